"""The README in Chinese says what the English one says: the same commands, no figure of its own, no dead link."""

import re
from pathlib import Path

import pytest
from written_commands import fault, fences, parts, spans

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
FIGURE = re.compile(r"\d+(?:\.\d+)*")


def blocks(text: str) -> list[str]:
    """The commands that stand alone, indented by four, without what is said behind them."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line.partition(" #")[0].strip() for line in re.findall(r"^ {4}(\S.*)$", outside, re.MULTILINE)]


def table(text: str) -> list[str]:
    """The first column of the table of commands."""
    return re.findall(r"^\| (`gyrostat [^|]+?) \|", text, re.MULTILINE)


def code(text: str) -> list[str]:
    """Lines of Python, without what is said behind them."""
    return [line.partition("#")[0].rstrip() for block in fences(text, "python") for line in block.splitlines()]


def test_the_same_commands_stand_alone() -> None:
    """Who reads one page types what who reads the other does."""
    assert blocks(CHINESE) == blocks(ENGLISH) and len(blocks(CHINESE)) >= 6


def test_the_table_has_the_same_commands() -> None:
    """A command that is added to one page is added to the other."""
    assert table(CHINESE) == table(ENGLISH) and len(table(CHINESE)) >= 10


def test_the_code_is_a_part_of_the_english_code() -> None:
    """No line of code that the English page does not show."""
    assert code(CHINESE) and set(code(CHINESE)) <= set(code(ENGLISH))


def test_no_figure_of_its_own() -> None:
    """Every number is one of the English page, also those of the example that is shown."""
    links = re.compile(r"\]\([^)]*\)")
    assert set(FIGURE.findall(links.sub("", CHINESE))) <= set(FIGURE.findall(links.sub("", ENGLISH)))
    shown = [line.rstrip() for block in fences(CHINESE, "") for line in block.splitlines()]
    assert shown and set(shown) <= {line.rstrip() for block in fences(ENGLISH, "") for line in block.splitlines()}


@pytest.mark.parametrize("line", sorted({s for s in spans(CHINESE) if s.startswith("gyrostat ")}))
def test_a_command_in_the_text_exists(line: str) -> None:
    """The real command line takes it; a group of commands may stand for itself."""
    found = [why for words in parts(line) if (why := fault(words))]
    assert not [why for why in found if "is missing" not in why]


def test_what_is_linked_is_there() -> None:
    """Pages of the repository, and the places in the English README."""
    titles = {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in re.findall(r"^#+ (.+)$", ENGLISH, re.M)}
    for target, place in re.findall(r"\]\(([^)#:]+)(?:#([^)]+))?\)", CHINESE):
        assert (ROOT / target).exists(), target
        assert not place or (target == "README.md" and place in titles)


def test_it_is_in_chinese_and_names_both_documents() -> None:
    """Its readers find their own documents named, and the page that goes through them."""
    assert len(re.findall(r"[\u4e00-\u9fff]", CHINESE)) > 1000 and "docs/founding.md" in CHINESE
    assert (
        "大规模循环MoE模型RL训练云部署实操指南" in CHINESE and "大规模混合专家模型后训练强化学习环境部署实践" in CHINESE
    )
