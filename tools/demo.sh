#!/bin/sh
# make demo: a maze from nothing to a page with a score, on this CPU. Makes a data set, trains a small agent
# on it, plays the five tasks on the way, draws what it believes, and closes with a sentence whose figures come
# from the run. Stopped and called again, it goes on where it was.
set -eu
cd "$(dirname "$0")/.."

# What is trained. Another setting is another run beside this one.
env=pointmaze-medium-navigate-oraclerep-v0
agent=dcrl
steps=${DEMO_STEPS:-75000}
flags="--hidden 128,128,128 --batch 256 --lr 1e-3 --gamma 0.995 --obs-scale on --average=on --seed 0 --set n=25 --set alpha=0.3"
data_episodes=${DEMO_DATA:-1000}    # of 1000 steps
task_episodes=${DEMO_EPISODES:-15}  # of each task in an evaluation
evaluations=5

dcrl=${DCRL:-build/dcrl}
out=${DEMO_OUT:-runs/demo}
data=$out/data-$data_episodes.npz
run=$out/$agent-$(echo "$env $steps $flags $data_episodes $task_episodes" | cksum | cut -d ' ' -f 1)
mkdir -p "$out"

echo "1. Data: $data_episodes episodes of a point that wanders through a maze, without goals or rewards."
[ -f "$data" ] || "$dcrl" gen "${env%-oraclerep-v0}" -o "$data" --episodes "$data_episodes"

echo "2. Training: $steps steps of $agent; every $((steps / evaluations)) of them its policy plays the five tasks."
if [ -f "$run/config.json" ]; then
    "$dcrl" train --resume "$run"
else
    # shellcheck disable=SC2086 # flags are words
    "$dcrl" train --env "$env" --agent "$agent" --data "$data" --steps "$steps" $flags --out "$run" \
        --log-every $((steps / 50 + 1)) --eval-every $((steps / evaluations)) --eval-episodes "$task_episodes"
fi

echo "3. Pictures and page."
"$dcrl" map "$run" >/dev/null
"$dcrl" map "$run" -o "$out/map.svg"
"$dcrl" report "$run" -o "$out/report.html"

# The last evaluation, and the time that training took; its clock starts anew whenever a run goes on.
awk -F , -v agent="$agent" '
    FNR == 1 { file++; next }
    file == 1 { if ($2 < last) before += last; last = $2; next }
    { step = $1; overall = $2; episodes = $8; best = worst = 3
      for (t = 4; t <= 7; t++) { if ($t > $best) best = t; if ($t < $worst) worst = t }
      high = $best; low = $worst }
    END {
        seconds = before + last
        printf "\nAfter %d steps (%d:%02d of training) %s reaches the goal in %.0f of %d episodes (%.0f %%); ", step,
            seconds / 60, seconds % 60, agent, overall * episodes, episodes, 100 * overall
        if (high == low) printf "all tasks alike.\n"
        else printf "task %d is its best (%.0f %%), task %d its worst (%.0f %%).\n", best - 2, 100 * high, worst - 2, 100 * low
    }' "$run/timing.csv" "$run/eval.csv"
echo "Open $out/report.html; the map of all tasks is $out/map.svg."
