// The order of things: a graph's forward and backward as tasks, each a launch or a few, and streams on which those that do
// not wait for each other run side by side. step.cu starts them.
#include "backend/cuda/program.cuh"

// ---- tasks ----

// A plain op forward, or its gradient to one input.
static void list_plain(const dc_program *p, task *u) {
    const dc_node *n = node(p, u->node), *x = node(p, n->in[0]);
    for (int i = 0; i < n->in_count; i++)
        u->reads.push_back(value_key(p, n->in[i]));
    if (x->op == DC_OP_linear && p->activation_of[(size_t)n->in[0]] == u->node)
        u->reads.push_back(value_key(p, x->in[2])); // the bias, which it adds
    int kept = 2 * p->g->count + u->node;           // what forward leaves for backward
    if (u->what == task::FORWARD) {
        u->writes.insert(u->writes.end(), {u->node, kept});
        return;
    }
    u->reads.push_back(kept);
    if (p->cast[(size_t)u->node].p) u->reads.push_back(3 * p->g->count + u->node);
    u->reads.push_back(grad_key(p, u->node));
    u->writes.push_back(grad_key(p, n->in[u->input]));
    if (u->input == 0 && dc_plain_pairs(p, u->node)) u->writes.push_back(grad_key(p, n->in[1]));
}

// An encoder's convolutions, of which forward leaves something for backward.
static void list_trunk(const dc_program *p, task *u) {
    const encoder_trunk *t = &p->trunks[(size_t)u->node];
    int inside = 2 * p->g->count + t->out;
    u->reads.push_back(value_key(p, t->x));
    for (dc_ref r : t->conv)
        for (int i = 1; i < 3; i++)
            u->reads.push_back(value_key(p, node(p, r)->in[i]));
    u->writes.push_back(inside);
    if (u->what == task::TRUNK)
        u->writes.push_back(t->out);
    else
        u->reads.insert(u->reads.end(), {t->out, grad_key(p, t->out)});
}

void dc_push_task(dc_program *p, task::kind what, dc_ref r, int input) {
    task u = {};
    u.what = what;
    u.node = r;
    u.input = input;
    if (what == task::GROUP) {
        u.reads = p->groups[(size_t)r].reads;
        u.writes = p->groups[(size_t)r].writes;
    } else if (what >= task::TRUNK) {
        list_trunk(p, &u);
    } else if (what == task::ZERO) {
        u.writes.push_back(grad_key(p, r));
    } else if (what == task::CAST) {
        u.reads.push_back(grad_key(p, r));
        u.writes.push_back(3 * p->g->count + r);
    } else if (what < task::ZERO && p->path[(size_t)r] == PLAIN) {
        list_plain(p, &u);
    } else if (what >= task::NET) {
        const net *n = &p->nets[(size_t)r];
        int inside = 2 * p->g->count + n->head; // stands for all that the network keeps to itself
        u.reads.push_back(value_key(p, n->x));
        if (what == task::NET) u.writes.push_back(n->head);
        if (what != task::NET) u.reads.push_back(grad_key(p, n->head));
        if (what == task::NET_BACK && n->job.dx) u.writes.push_back(grad_key(p, n->x));
        if (what != task::NET_HEAD) // which reads what forward made, as the gradient has it
            (what == task::NET_WEIGHTS ? u.reads : u.writes).push_back(inside);
    } else {
        const dc_node *n = node(p, r);
        for (int i = 0; i < n->in_count; i++) {
            u.reads.push_back(value_key(p, n->in[i]));
            bool weight = n->op == DC_OP_linear && i == 1, back = what != task::FORWARD;
            if (back && wants(p, n, i) && weight == (what == task::WEIGHTS))
                u.writes.push_back(grad_key(p, n->in[i]));
        }
        if (what == task::FORWARD) u.writes.push_back(r);
        if (what != task::FORWARD) u.reads.push_back(grad_key(p, r));
        if (what != task::FORWARD && p->cast[(size_t)r].p) u.reads.push_back(3 * p->g->count + r);
        if (what != task::FORWARD && (n->op != DC_OP_linear || what == task::WEIGHTS))
            u.writes.push_back(2 * p->g->count + r);
    }
    p->tasks.push_back(u);
}

static void order_forward(dc_program *p) {
    for (dc_ref r = 0; r < p->g->count; r++) {
        const dc_node *n = node(p, r);
        if (n->op < DC_FIRST_COMPUTED) continue;
        if (is_pointwise(p, r)) {
            dc_group_forward(p, r);
            continue;
        }
        if (is_inside(p, r)) continue;
        int whole = p->net_of[(size_t)r], trunk = p->trunk_of[(size_t)r];
        if (trunk >= 0) {
            dc_group_flush(p, {value_key(p, p->trunks[(size_t)trunk].x)});
            dc_push_task(p, task::TRUNK, trunk);
            continue;
        }
        dc_group_flush(p, whole >= 0 ? std::vector<int>{p->nets[(size_t)whole].x}
                                     : dc_value_keys(p, n));
        if (whole >= 0)
            dc_push_task(p, task::NET, whole);
        else
            dc_push_task(p, task::FORWARD, r);
    }
}

// Owners whose gradient is summed start from zero before their first contribution.
static void order_zeros(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    for (int i = 0; i < n->in_count; i++) {
        dc_ref base = node(p, n->in[i])->base;
        const dc_node *owner = node(p, base);
        if (!owner->grad_sum || owner->grad_first != r || owner->lo == owner->hi) continue;
        if (is_deferred(p, base) || is_inside(p, base)) continue; // its gradient lies nowhere
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen = seen || node(p, n->in[k])->base == base;
        if (seen) continue;
        if (is_pointwise(p, r) && !p->half[base])
            dc_group_zero(p, base);
        else
            dc_push_task(p, task::ZERO, base);
    }
}

// What the backward of a layer reads and adds to.
static std::vector<int> backward_keys(const dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    std::vector<int> keys = dc_value_keys(p, n);
    keys.push_back(grad_key(p, r));
    for (int i = 0; i < n->in_count; i++)
        keys.push_back(grad_key(p, n->in[i]));
    return keys;
}

static void order_layer_backward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (n->op == DC_OP_linear && p->cast[(size_t)r].p) dc_push_task(p, task::CAST, r);
    if (n->op != DC_OP_linear || wants(p, n, 0)) dc_push_task(p, task::GRADIENT, r);
    if (n->op == DC_OP_linear && (wants(p, n, 1) || wants(p, n, 2)))
        dc_push_task(p, task::WEIGHTS, r);
}

static void order_plain_backward(dc_program *p, dc_ref r) {
    const dc_node *n = node(p, r);
    if (p->cast[(size_t)r].p) dc_push_task(p, task::CAST, r);
    for (int i = 0; i < n->in_count; i++) {
        bool made = i == 1 && dc_plain_pairs(p, r); // with that to input 0
        if (dc_flows(n, i) && wants(p, n, i) && !made) dc_push_task(p, task::GRADIENT, r, i);
    }
}

static void order_backward(dc_program *p) {
    dc_ref loss = p->g->loss;
    if (loss < 0 || !trained(node(p, loss))) return;
    if (!is_deferred(p, loss)) dc_group_seed(p, loss, 1, false);
    for (dc_ref r = loss; r >= 0; r--) {
        const dc_node *n = node(p, r);
        if (n->op < DC_FIRST_COMPUTED || !trained(n) || is_inside(p, r)) continue;
        if (!is_pointwise(p, r)) dc_group_flush(p, backward_keys(p, r));
        int whole = p->net_of[(size_t)r], trunk = p->trunk_of[(size_t)r];
        if (trunk >= 0) {
            for (dc_ref conv : p->trunks[(size_t)trunk].conv)
                order_zeros(p, conv);
            dc_push_task(p, task::TRUNK_BACK, trunk);
            continue;
        }
        if (whole >= 0) {
            const net *n = &p->nets[(size_t)whole];
            if (n->weights && !n->job.head_bias) dc_push_task(p, task::NET_HEAD, whole);
            dc_push_task(p, task::NET_BACK, whole);
            if (n->weights && !p->shares_norm) dc_push_task(p, task::NET_WEIGHTS, whole);
            continue;
        }
        order_zeros(p, r);
        if (is_pointwise(p, r))
            dc_group_backward(p, r);
        else if (p->path[(size_t)r] == PLAIN)
            order_plain_backward(p, r);
        else
            order_layer_backward(p, r);
    }
}

void dc_tasks_order(dc_program *p) {
    order_forward(p);
    order_backward(p);
    dc_group_flush_all(p);
}

// ---- streams: what does not wait for each other runs side by side ----

static void add_once(std::vector<int> *list, int u) {
    for (int v : *list)
        if (v == u) return;
    list->push_back(u);
}

// Tasks that task u must wait for: who wrote what it reads, and who wrote or read what it writes.
static void depend(dc_program *p, std::vector<std::vector<int>> *needs) {
    std::vector<int> writer((size_t)p->g->count * 4, -1);
    std::vector<std::vector<int>> readers((size_t)p->g->count * 4);
    for (int u = 0; u < (int)p->tasks.size(); u++) {
        std::vector<int> *need = &(*needs)[(size_t)u];
        for (int key : p->tasks[(size_t)u].reads)
            if (writer[(size_t)key] >= 0) add_once(need, writer[(size_t)key]);
        for (int key : p->tasks[(size_t)u].writes) {
            if (writer[(size_t)key] >= 0) add_once(need, writer[(size_t)key]);
            for (int r : readers[(size_t)key])
                if (r != u) add_once(need, r);
        }
        for (int key : p->tasks[(size_t)u].reads)
            readers[(size_t)key].push_back(u);
        for (int key : p->tasks[(size_t)u].writes) {
            writer[(size_t)key] = u;
            readers[(size_t)key].clear();
        }
    }
}

// Are there weights that go early, or their gradient, among these?
static bool has_early(const dc_program *p, const std::vector<int> &keys) {
    for (int key : keys) {
        const dc_node *n = node(p, key % p->g->count);
        if (key < 2 * p->g->count && n->op == DC_OP_PARAM && n->offset < p->cut) return true;
    }
    return false;
}

// Does a task use weights that go early?
static bool uses_early(const dc_program *p, const task *u) {
    if (has_early(p, u->reads) || has_early(p, u->writes)) return true;
    if (u->what < task::NET || u->what >= task::TRUNK) return false;
    dc_ref r = p->nets[(size_t)u->node].linear[0];
    const dc_node *n = node(p, r);
    for (int i = 0; i < n->in_count; i++) {
        const dc_node *owner = node(p, node(p, n->in[i])->base);
        if (owner->op == DC_OP_PARAM && owner->offset < p->cut) return true;
    }
    return false;
}

// Tasks that neither use those weights nor lead to one that does.
static void find_late(dc_program *p, const std::vector<std::vector<int>> &needs) {
    std::vector<char> needed(p->tasks.size());
    for (int u = (int)p->tasks.size() - 1; u >= 0; u--) {
        task *mine = &p->tasks[(size_t)u];
        mine->late = p->cut && !needed[(size_t)u] && !uses_early(p, mine);
        for (int v : needs[(size_t)u])
            needed[(size_t)v] = needed[(size_t)v] || !mine->late;
    }
}

int dc_tasks_last(const dc_program *p, int stream, bool late) {
    for (int u = (int)p->tasks.size() - 1; u >= 0; u--)
        if (p->tasks[(size_t)u].stream == stream && p->tasks[(size_t)u].late == late) return u;
    return -1;
}

// A task follows the latest of those it waits for, if that one is the last of its stream; else it takes
// the stream that has been idle for longest.
void dc_tasks_streams(dc_program *p) {
    std::vector<std::vector<int>> needs(p->tasks.size());
    depend(p, &needs);
    int last[STREAMS];
    for (int l = 0; l < STREAMS; l++)
        last[l] = -1;
    for (int u = 0; u < (int)p->tasks.size(); u++) {
        int stream = -1, latest = -1;
        for (int v : needs[(size_t)u])
            if (last[p->tasks[(size_t)v].stream] == v && v > latest) {
                latest = v;
                stream = p->tasks[(size_t)v].stream;
            }
        for (int l = 0; stream < 0 && l < STREAMS; l++)
            if (last[l] == -1) stream = l;
        if (stream < 0) {
            stream = 0;
            for (int l = 1; l < STREAMS; l++)
                if (last[l] < last[stream]) stream = l;
        }
        p->tasks[(size_t)u].stream = stream;
        last[stream] = u;
        for (int v : needs[(size_t)u])
            if (p->tasks[(size_t)v].stream != stream) {
                p->tasks[(size_t)u].waits.push_back(v);
                p->tasks[(size_t)v].awaited = true;
            }
    }
    find_late(p, needs);
    for (int l = 0; l < STREAMS; l++)
        for (int late = 0; late < 2; late++) // by what comes after all
            if (dc_tasks_last(p, l, late) >= 0)
                p->tasks[(size_t)dc_tasks_last(p, l, late)].awaited = true;
}
