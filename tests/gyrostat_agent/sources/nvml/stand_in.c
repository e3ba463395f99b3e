/* A stand-in for NVIDIA's libnvidia-ml.so.1: what the binding needs of it, with GPUs that a test makes well or ill.
 *
 * The GPUs are described by the file named in STAND_IN_STATE, lines of `key value`, read anew whenever it has changed:
 *   count 2               GPUs here                  init 9                what nvmlInit answers, 0: success
 *   0.util 97             a value of GPU 0           0.lost 15             what every question to it answers
 *   0.error.FUNCTION 3    what one function answers  0.field.38 5          a field; one not named is unsupported
 *   0.links 18            NVLinks                    0.link.4 0            the state of one
 *   0.xids 1, 0.xid.0 79  events so far              0.hang 1              questions to it wait until this is gone
 *   all.error.FUNCTION 3  of every GPU               wait 15               what waiting for events answers
 *   0.mute 1              a set of events with this GPU in it tells of nothing but its loss
 *   0.nameless 1          its events do not say whose they are             counting 999          what counting GPUs answers
 * How often each function was asked of a GPU is counted: stand_in_asked.
 * Built with -DOLD it lacks the functions that drivers of some years ago lack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { u32 index; } Device;

enum { GPUS = 16, KEYS = 1024, FUNCTIONS = 64 };
static Device devices[GPUS];
static int open_count;

/* -- the state ------------------------------------------------------------------------------------------------ */

static struct { char key[64]; u64 value; } state[KEYS];
static int keys;
static struct stat read_as;

static void look(void) {
  const char *path = getenv("STAND_IN_STATE");
  struct stat now;
  if (!path || stat(path, &now)) { keys = 0; return; }
  if (now.st_ino == read_as.st_ino && now.st_mtim.tv_sec == read_as.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == read_as.st_mtim.tv_nsec) return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  for (keys = 0; keys < KEYS && fscanf(file, "%63s %llu", state[keys].key, &state[keys].value) == 2; keys++) {}
  fclose(file);
  read_as = now;
}

static int find(const char *key, u64 *value) {
  for (int i = 0; i < keys; i++)
    if (!strcmp(state[i].key, key)) { *value = state[i].value; return 1; }
  return 0;
}

static u64 value(u32 gpu, const char *name, u64 otherwise) {
  char key[64];
  snprintf(key, sizeof key, "%u.%s", gpu, name);
  find(key, &otherwise);
  return otherwise;
}

static u64 global(const char *key, u64 otherwise) { find(key, &otherwise); return otherwise; }

/* -- what every question goes through ------------------------------------------------------------------------- */

static struct { const char *name; int asked[GPUS]; } functions[FUNCTIONS];

static int *counter(const char *name, u32 gpu) {
  int i = 0;
  while (i < FUNCTIONS - 1 && functions[i].name && strcmp(functions[i].name, name)) i++;
  functions[i].name = name;
  return &functions[i].asked[gpu];
}

int stand_in_asked(const char *name, u32 gpu) {
  for (int i = 0; i < FUNCTIONS && functions[i].name; i++)
    if (!strcmp(functions[i].name, name)) return functions[i].asked[gpu];
  return 0;
}

static int enter(Device *device, const char *name) {
  char key[64];
  u64 code;
  look();
  if (!open_count) return 1;
  if (!device) return 2;
  ++*counter(name, device->index);
  while (value(device->index, "hang", 0)) { usleep(2000); look(); }
  if ((code = value(device->index, "lost", 0))) return (int)code;
  snprintf(key, sizeof key, "all.error.%s", name);
  if (find(key, &code)) return (int)code;
  snprintf(key, sizeof key, "%u.error.%s", device->index, name);
  return find(key, &code) ? (int)code : 0;
}

#define ENTER int refused = enter(d, __func__); if (refused) return refused

/* -- the library and the GPUs --------------------------------------------------------------------------------- */

int nvmlInitWithFlags(u32 flags) {
  (void)flags;
  look();
  int code = (int)global("init", 0);
  if (code) return code;
  for (u32 i = 0; i < GPUS; i++) devices[i].index = i;
  open_count++;
  return 0;
}

int nvmlShutdown(void) { if (!open_count) return 1; open_count--; return 0; }

const char *nvmlErrorString(int code) { (void)code; return "an error without a name"; }

int nvmlSystemGetDriverVersion(char *text, u32 size) { snprintf(text, size, "580.95.05"); return 0; }

int stand_in_open(void) { return open_count; }

int nvmlDeviceGetCount_v2(u32 *count) {
  *count = (u32)global("count", 1);
  return open_count ? (int)global("counting", 0) : 1;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, Device **device) {
  if (index >= GPUS) return 2;
  *device = &devices[index];
  return enter(*device, __func__);
}

int nvmlDeviceGetUUID(Device *d, char *text, u32 size) { ENTER; snprintf(text, size, "GPU-0000-%u", d->index); return 0; }

int nvmlDeviceGetName(Device *d, char *text, u32 size) { ENTER; snprintf(text, size, "NVIDIA H100 80GB HBM3"); return 0; }

/* -- what changes --------------------------------------------------------------------------------------------- */

int nvmlDeviceGetUtilizationRates(Device *d, u32 *rates) {
  ENTER;
  rates[0] = (u32)value(d->index, "util", 97);
  rates[1] = (u32)value(d->index, "copy", 41);
  return 0;
}

int nvmlDeviceGetMemoryInfo(Device *d, u64 *m) {
  ENTER;
  m[0] = 85520809984ULL;
  m[2] = value(d->index, "used", 64424509440ULL) + 1073741824ULL; /* the driver's own is part of it here */
  m[1] = m[0] - m[2];
  return 0;
}

#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(Device *d, void *memory) {
  ENTER;
  struct { u32 version; u64 total, reserved, free, used; } *m = memory;
  if (m->version >> 24 != 2) return 25;
  m->total = 85520809984ULL;
  m->used = value(d->index, "used", 64424509440ULL);
  m->reserved = 1073741824ULL;
  m->free = m->total - m->used - m->reserved;
  return 0;
}

int nvmlDeviceGetTemperatureV(Device *d, void *answer) {
  ENTER;
  struct { u32 version, sensor; int celsius; } *t = answer;
  t->celsius = (int)value(d->index, "celsius", 61);
  return 0;
}

int nvmlDeviceGetCurrentClocksEventReasons(Device *d, u64 *bits) { ENTER; *bits = value(d->index, "throttle", 4); return 0; }

int nvmlDeviceGetRemappedRows(Device *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
  ENTER;
  *corrected = (u32)value(d->index, "rows.corrected", 0);
  *uncorrected = (u32)value(d->index, "rows.uncorrected", 0);
  *pending = (u32)value(d->index, "rows.pending", 0);
  *failed = (u32)value(d->index, "rows.failed", 0);
  return 0;
}
#endif

int nvmlDeviceGetTemperature(Device *d, u32 sensor, u32 *celsius) {
  ENTER;
  (void)sensor;
  *celsius = (u32)value(d->index, "celsius", 61);
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, u64 *bits) {
  ENTER;
  *bits = value(d->index, "throttle", 4);
  return 0;
}

int nvmlDeviceGetPowerUsage(Device *d, u32 *milliwatts) {
  ENTER;
  *milliwatts = (u32)value(d->index, "milliwatts", 655250);
  return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(Device *d, u32 *milliwatts) { ENTER; *milliwatts = 700000; return 0; }

int nvmlDeviceGetClockInfo(Device *d, u32 clock, u32 *megahertz) {
  ENTER;
  *megahertz = (u32)(clock == 1 ? value(d->index, "clock.sm", 1980) : clock == 2 ? 2619 : 0);
  return 0;
}

int nvmlDeviceGetTotalEccErrors(Device *d, u32 kind, u32 since, u64 *count) {
  ENTER;
  char name[40];
  snprintf(name, sizeof name, "ecc.%s.%s", kind ? "uncorrected" : "corrected", since ? "aggregate" : "volatile");
  *count = value(d->index, name, 0);
  return 0;
}

int nvmlDeviceGetPcieReplayCounter(Device *d, u32 *count) { ENTER; *count = (u32)value(d->index, "replays", 0); return 0; }

int nvmlDeviceGetPcieThroughput(Device *d, u32 way, u32 *kilobytes) {
  ENTER;
  *kilobytes = (u32)value(d->index, way ? "pcie.received" : "pcie.sent", 1000);
  return 0;
}

int nvmlDeviceGetNvLinkState(Device *d, u32 link, u32 *active) {
  ENTER;
  char name[24];
  if (link >= value(d->index, "links", 18)) return 2;
  snprintf(name, sizeof name, "link.%u", link);
  *active = (u32)value(d->index, name, 1);
  return 0;
}

/* A field bears its own return code, and its value in the union's member for its type; the rest of it is noise. */
int nvmlDeviceGetFieldValues(Device *d, int count, void *answers) {
  ENTER;
  struct { u32 field, scope; long long at, latency; u32 type; int code; u64 value; } *f = answers;
  for (int i = 0; i < count; i++) {
    char name[32], scoped[32];
    u64 found = 0;
    snprintf(name, sizeof name, "field.%u", f[i].field);
    snprintf(scoped, sizeof scoped, "field.%u.%u", f[i].field, f[i].scope);
    if (value(d->index, scoped, value(d->index, name, ~0ULL)) == ~0ULL) { f[i].code = 3; continue; }
    found = value(d->index, scoped, value(d->index, name, 0));
    f[i].code = 0;
    f[i].type = f[i].field == 52 ? 1 : f[i].field == 59 ? 0 : 3; /* one as an unsigned int, one as a double's bits */
    f[i].value = f[i].type == 1 ? found | 0xdead00000000ULL : found;
  }
  return 0;
}

/* -- events --------------------------------------------------------------------------------------------------- */

typedef struct { u64 mask[GPUS], seen[GPUS]; } Set;
typedef struct { Device *device; u64 type, data; u32 instance, compute; } Event;

int nvmlEventSetCreate(Set **set) { *set = calloc(1, sizeof **set); return *set ? 0 : 20; }

int nvmlEventSetFree(Set *set) { free(set); return 0; }

int nvmlDeviceRegisterEvents(Device *d, u64 types, Set *set) {
  ENTER;
  set->mask[d->index] |= types;
  set->seen[d->index] = value(d->index, "xids", 0);
  return 0;
}

int nvmlEventSetWait_v2(Set *set, Event *event, u32 milliseconds) {
  look();
  if (milliseconds) abort(); /* whoever waits here keeps the other GPUs waiting */
  int code = (int)global("wait", 0);
  for (u32 i = 0; i < GPUS; i++)
    if (set->mask[i] & 8 && value(i, "mute", 0)) return 15;
  for (u32 i = 0; i < GPUS; i++) {
    if (!(set->mask[i] & 8) || value(i, "xids", 0) <= set->seen[i] || code) continue;
    char name[32];
    snprintf(name, sizeof name, "xid.%llu", set->seen[i]++);
    *event = (Event){value(i, "nameless", 0) ? NULL : &devices[i], 8, value(i, name, 0), ~0u, ~0u};
    return 0;
  }
  return code ? code : 10;
}
