// Views, see view.h: the renderer is the one of the family's engine.
#include "env/view.h"

#include "env/family.h"

dc_status dc_view_new(dc_view **view, const dc_env_spec *spec, const dc_view_options *options) {
    const dc_sim *sim;
    DC_CHECK(options->width > 0 && options->width <= DC_VIEW_MOST);
    DC_CHECK(options->height > 0 && options->height <= DC_VIEW_MOST);
    *view = NULL;
    DC_TRY(dc_sim_need(spec, &sim));
    return sim->engine->view(view, spec, options);
}

void dc_view_free(dc_view *view) {
    if (view) view->ops->free(view);
}

dc_status dc_view_draw(dc_view *view, const dc_states *states, const int64_t *rows, int count,
                       uint8_t *rgb) {
    DC_CHECK(states->family == view->spec.family);
    for (int k = 0; k < count; k++)
        DC_CHECK(rows[k] >= 0 && rows[k] < states->count);
    return view->ops->draw(view, states, rows, count, rgb);
}

double dc_view_rate(const dc_view *view) {
    return view->ops->rate(view);
}
