// Training on the CPU, and the choice of a trainer, see trainer.h.
#include "train/trainer.h"

#include "backend/cpu/cpu.h"
#include "base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    dc_agent *agent;
    uint64_t step; // updates done
    double sums[DC_METRICS_MAX + 1];
} member;

typedef struct cpu_trainer {
    dc_trainer head;
    double lr, tau;
    int count;
    member members[]; // (count)
} cpu_trainer;

static cpu_trainer *of(dc_trainer *t) {
    return (cpu_trainer *)t;
}

static void add_metrics(member *m, double norm2) {
    const dc_agent *a = m->agent;
    for (int i = 0; i < a->metric_count; i++)
        m->sums[i] += (double)*dc_value(&a->exec, a->metrics[i].node).p;
    m->sums[a->metric_count] += sqrt(norm2);
}

// One step: sample, gather, forward, backward; guard; EMA and Adam; metrics. *bad: NaN or Inf, not applied.
static dc_status train_step(const cpu_trainer *t, member *m, bool *bad) {
    dc_agent *a = m->agent;
    DC_TRY(dc_agent_gradients(a, m->step));
    dc_cpu_share_gradients(&a->exec);
    double norm2 = dc_backend_cpu.grad_norm2(&a->params.slabs, a->pool);
    double loss = (double)*dc_value(&a->exec, a->graph.loss).p;
    *bad = !isfinite((dc_real)norm2) || !isfinite(loss); // Adam squares in dc_real
    if (*bad) return DC_OK;
    dc_adam adam = dc_agent_adam(a, t->lr, t->tau, (int64_t)m->step);
    dc_backend_cpu.update(&a->params.slabs, &adam, a->pool);
    add_metrics(m, norm2);
    m->step++;
    return DC_OK;
}

static dc_status step(dc_trainer *trainer, int64_t steps, int64_t *bad, double *const *sums) {
    cpu_trainer *t = of(trainer);
    for (int i = 0; i < t->count; i++) {
        member *m = &t->members[i];
        bool stop = false;
        for (int64_t s = 0; s < steps && !stop; s++)
            DC_TRY(train_step(t, m, &stop));
        bad[i] = stop ? (int64_t)m->step + 1 : -1;
        memcpy(sums[i], m->sums, (size_t)(m->agent->metric_count + 1) * sizeof *m->sums);
    }
    return DC_OK;
}

static dc_status compile(dc_trainer **out, dc_agent *const *agents, int count,
                         const dc_trainer_spec *spec) {
    cpu_trainer *t = calloc(1, sizeof *t + (size_t)count * sizeof t->members[0]);
    if (!t) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    t->head.name = "cpu";
    t->lr = spec->lr;
    t->tau = spec->tau;
    t->count = count;
    bool bf16 = spec->precision == 2;
    if (bf16 && !dc_gemm_has_bf16()) {
        dc_log(DC_WARN, "this processor does not multiply bf16 (AVX512-BF16): training in fp32");
        bf16 = false;
    }
    for (int i = 0; i < count; i++) {
        agents[i]->exec.bf16 = bf16;
        t->members[i] = (member){.agent = agents[i], .step = dc_sampler_step(agents[i]->sampler)};
    }
    *out = &t->head;
    return DC_OK;
}

static void free_trainer(dc_trainer *t) {
    free(t);
}

static dc_status send(dc_trainer *t, int number, uint64_t at, const double *sums) {
    member *m = &of(t)->members[number];
    m->step = at;
    memcpy(m->sums, sums, (size_t)(m->agent->metric_count + 1) * sizeof *sums);
    return DC_OK;
}

static dc_status renew(dc_trainer *t, int64_t first, int64_t count) {
    (void)t;
    (void)first; // rows are read where they lie
    (void)count;
    return DC_OK;
}

static dc_status clear(dc_trainer *t) {
    for (int i = 0; i < of(t)->count; i++)
        memset(of(t)->members[i].sums, 0, sizeof of(t)->members[i].sums);
    return DC_OK;
}

static dc_status fetch(dc_trainer *t, int number) {
    (void)t;
    (void)number; // the agent is where it is trained
    return DC_OK;
}

static dc_status retrace(dc_trainer *t, int number, uint64_t at) {
    (void)t;
    (void)number; // its graph stands where it went bad
    (void)at;
    return DC_OK;
}

static dc_status gradients(dc_trainer *t, int number, float *values) {
    const member *m = &of(t)->members[number];
    DC_TRY(dc_agent_gradients(m->agent, m->step));
    for (int i = 0; i < m->agent->metric_count; i++)
        values[i] = (float)*dc_value(&m->agent->exec, m->agent->metrics[i].node).p;
    return DC_OK;
}

static dc_status describe(const dc_trainer *trainer, dc_text *out) {
    const cpu_trainer *t = (const cpu_trainer *)trainer;
    dc_text_add(out, "cpu, products in %s", t->members[0].agent->exec.bf16 ? "bf16" : "fp32");
    return dc_text_status(out);
}

const dc_trainer_ops dc_trainer_cpu = {.device = "cpu",
                                       .least_steps = 1,
                                       .compile = compile,
                                       .free = free_trainer,
                                       .send = send,
                                       .step = step,
                                       .renew = renew,
                                       .clear = clear,
                                       .fetch = fetch,
                                       .retrace = retrace,
                                       .gradients = gradients,
                                       .describe = describe};

// ---- the choice ----

dc_status dc_trainer_new(dc_trainer **out, dc_device device, dc_agent *const *agents, int count,
                         const dc_trainer_spec *spec) {
    static const dc_trainer_ops *const devices[] = {
        [DC_DEVICE_CPU] = &dc_trainer_cpu,
#ifdef DC_CUDA_BUILD
        [DC_DEVICE_CUDA] = &dc_trainer_cuda,
#endif
    };
    *out = NULL;
    if ((size_t)device >= sizeof devices / sizeof devices[0])
        return dc_fail(DC_UNSUPPORTED,
                       "install the CUDA toolkit (nvcc) and build again, or use --device cpu",
                       "this build has no CUDA backend (--device cuda)");
    DC_TRY(devices[device]->compile(out, agents, count, spec));
    (*out)->ops = devices[device];
    return DC_OK;
}

void dc_trainer_free(dc_trainer *t) {
    if (t) t->ops->free(t);
}
