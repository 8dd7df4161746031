// A maze as a picture: predicted distances to a goal by colour, walls, and where episodes went. One
// self-contained SVG that follows the reader's light or dark setting; bytes depend on the input alone.
#ifndef DC_MAZE_PLOT_H
#define DC_MAZE_PLOT_H

#include "base/text.h"
#include "rollout/eval.h"
#include "rollout/map.h"

typedef struct dc_maze_panel {
    int task; // 1 ... DC_TASKS
    const dc_value_map *map;
    const dc_path *paths; // (path_count)
    int path_count;
} dc_maze_panel;

// The longest finite distance of all panels, at least 1: the end of a scale that fits them.
double dc_maze_longest(const dc_maze_panel *panels, int count);
// Append an <svg> element of `count` panels with one legend; colours go from 0 to `most` steps.
dc_status dc_maze_svg(dc_text *out, const char *title, const dc_maze_panel *panels, int count,
                      double most);

#endif
