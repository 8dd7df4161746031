// The report's page while it is written: what html.c finds out about the runs, and the sections of html_results.c. A section
// without data writes nothing.
#ifndef DC_HTML_PAGE_H
#define DC_HTML_PAGE_H

#include "report/html.h"

typedef struct env_facts {     // of an environment
    const dc_score *published; // the first score that the paper has a figure for; Nullable
    int evaluations;           // fewest that a run's success is the mean of
    int seeds;                 // most behind a success
} env_facts;

typedef struct option_facts { // of an option that counts
    const char *key;
    const dc_json *first; // its value in the first group that has it
    bool differs;         // two groups that have it disagree
} option_facts;

typedef struct page {
    dc_text *out;
    dc_arena *arena;
    const env_facts *envs;       // (environments)
    const dc_score *best;        // overall success; Nullable
    bool seeds;                  // some group has several
    const option_facts *options; // (option_count) in order of first appearance
    int option_count;
    const dc_runs *runs;
    const dc_table *table;
    const dc_compare *compare;
    const dc_curves *curves;
    dc_lock_result *locks; // (lock_count) under the labels of their groups
    int *lock_style;       // (lock_count) of the labels
    int refresh;           // seconds; 0: never
    int lock_count;
} page;

// html.c: a group's name among the others; what a lock's error means.
void dc_html_group_name(const dc_report_group *g, dc_text *out);
void dc_html_lock_sentence(const page *p, dc_text *out);

// html_results.c
void dc_html_compare(const page *p); // methods by tasks, with published figures
dc_status dc_html_success(const page *p);
void dc_html_maps(const page *p);
dc_status dc_html_lock(const page *p);
dc_status dc_html_held_out(const page *p);
dc_status dc_html_speed(const page *p);
dc_status dc_html_training(const page *p);

#endif
