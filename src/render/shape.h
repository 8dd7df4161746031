// What shape.c and simplify.c share.
#ifndef DC_RENDER_SHAPE_H
#define DC_RENDER_SHAPE_H

#include "render/render.h"

// Arrays for that many; false without memory. They are freed by the second, which is safe on a zeroed struct.
bool dc_shape_reserve(dc_shape *shape, int vertices, int triangles);
void dc_shape_fini(dc_shape *shape);
// simplify.c: add levels of detail to a mesh that has its first. Errors: DC_NO_MEMORY, with all levels freed.
dc_status dc_shapes_simplify(dc_shapes *shapes);

#endif
