// The page of a run that is at work: written anew after every evaluation, in its folder.
#ifndef DC_LIVE_H
#define DC_LIVE_H

#include "base/status.h"

#include <stdbool.h>

enum { DC_LIVE_SECONDS = 30 }; // between a browser's looks at a page that is still to change

// Write FOLDER/report.html from the run, or the runs, in a folder. With `alive` it loads itself again now and then.
dc_status dc_live_page(const char *folder, bool alive);

#endif
