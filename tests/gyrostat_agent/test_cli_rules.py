"""``gyrostat rules``: what people and editors are shown of a pack."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from gyrostat_agent.cli.group import gyrostat
from gyrostat_agent.cli.options import builtin
from gyrostat_agent.errors import SetupError
from gyrostat_rules.packfile import parse


def called(*words: str) -> Result:
    """The command line, called."""
    return CliRunner().invoke(gyrostat, ["rules", *words])


def test_every_rule_stands_in_the_table_and_in_json() -> None:
    """With how grave it is, what kind of fault it tells and what it looks at."""
    names = [rule.alert for rule in parse(builtin()).rules]
    table, told = called("list"), json.loads(called("list", "--json").stdout)
    assert table.exit_code == 0 and all(name[:10] in table.stdout for name in names)
    assert [rule["alert"] for rule in told["rules"]] == names
    spike = next(rule for rule in told["rules"] if rule["alert"] == "LossSpike")
    assert (spike["severity"], spike["fault"], spike["wants"]) == ("warning", "loss_spike", "loss")


def test_a_pack_that_is_none_is_one_clear_line(tmp_path: Path) -> None:
    """A mistake of the user's is no stack trace."""
    path = tmp_path / "mine.yaml"
    path.write_text("pack: mine\n", encoding="utf-8")
    for file, told in ((path, "mine.yaml:1:1: 'groups' is missing here"), (tmp_path / "none.yaml", "No such file")):
        error = called("list", str(file)).exception
        assert isinstance(error, SetupError) and told in str(error)


def test_the_schema_is_one_document() -> None:
    """As an editor is given it."""
    assert json.loads(called("schema").stdout)["title"] == "Gyrostat rule pack"
