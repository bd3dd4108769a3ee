/* A program in C whose agents export through plug-ins in C and C++, which may throw. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "telering.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int warnings;
static char last[1000];

static void hear(void *user, const char *kind, const char *message) {
    (void)user;
    (void)kind;
    warnings++;
    snprintf(last, sizeof last, "%s", message);
}

static telering_counts run(const char *name, const char *plugin, int expected, const char *says) {
    telering_options options = {0};
    telering_agent agent;
    telering_counts counts = {0};
    options.size = sizeof options;
    options.enable = 1;
    options.ignore_environment = 1;
    options.exporter = plugin;
    options.plugin_dir = PLUGINS;
    options.on_warning = hear;
    options.run_interval_ms = 5;
    warnings = 0;
    CHECK(telering_agent_open(name, &options, &agent, NULL, 0) == TELERING_OK);
    for (int i = 0; i < 1000; i++) {
        telering_transfer one;
        telering_transfer_telemetry told;
        CHECK(telering_transfer_begin(agent, TELERING_WRITE, 4096, 1, &one) == TELERING_OK);
        CHECK(telering_transfer_posted(one) == TELERING_OK && telering_transfer_finish(one) == TELERING_OK);
        CHECK(telering_transfer_get_telemetry(one, &told) == TELERING_OK && told.total_bytes == 4096);
        CHECK(telering_transfer_release(one) == TELERING_OK);
        if (i == 500) usleep(1200000); /* so that the exporter keeps house once */
    }
    CHECK(telering_agent_close(agent, &counts) == TELERING_OK);
    CHECK(counts.recorded == counts.exported + counts.lost_staging + counts.lost_exporter);
    CHECK(warnings == expected);
    if (warnings != expected || (says != NULL && strstr(last, says) == NULL)) {
        CHECK(says != NULL && strstr(last, says) != NULL);
        fprintf(stderr, "%s: %d warnings, the last: %s\n", name, warnings, last);
    }
    return counts;
}

int main(void) {
    char folder[] = "/tmp/telering-plugins-XXXXXX", path[128];
    if (mkdtemp(folder) == NULL) return 2;
    setenv("CSV_EXPORTER_DIR", folder, 1);
    CHECK(run("csv", "csv", 0, NULL).exported == 4000);
    snprintf(path, sizeof path, "%s/csv-%d.csv", folder, (int)getpid());
    CHECK(access(path, R_OK) == 0);

    CHECK(run("quiet", "throws", 0, NULL).exported == 4000);
    CHECK(run("constructor", "throws", 1, "thrown on purpose in constructor: it could not open").recorded == 0);
    CHECK(run("exportEvents", "throws", 1, "thrown on purpose in exportEvents").lost_exporter == 4000);
    CHECK(run("publish", "throws", 1, "thrown on purpose in publish").exported == 4000);
    CHECK(run("housekeep", "throws", 1, "thrown on purpose in housekeep").exported == 4000);
    CHECK(run("close", "throws", 1, "thrown on purpose in close").exported == 4000);
    CHECK(run("odd exportEvents", "throws", 1, "something that is no std::exception").exported == 0);
    telering_counts lost = run("lost", "throws", 1, "one is gone");
    CHECK(lost.lost_exporter > 0 && lost.exported > 3000);
    return finish();
}
