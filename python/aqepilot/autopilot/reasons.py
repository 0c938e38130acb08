"""Why the autopilot takes a step: each reason has a stable code and a sentence."""

from __future__ import annotations

# Codes are added, never renamed: teams read years of journals.
REASONS = {
    "CANDIDATE_NEW": "the log, or a folder of policies, has a policy that was not tried on this "
    "job, and its replay changes decisions",
    "SHADOW_WELL": "in shadow mode the policy answered, and none of its answers failed",
    "RAMP": "no sign of harm: the share of traffic goes one step up",
    "GAIN_SHOWN": "the evidence of a gain is enough among all experiments of the fleet",
    "HARM_SHOWN": "the treated runs take longer, and not by chance",
    "FAILURES": "more of the treated runs fail",
    "OUT_OF_MEMORY": "more of the treated runs run out of memory",
    "DRAW_BROKEN": "the arms have other numbers of runs than were drawn",
    "GAIN_SMALL": "the runs show no gain that is worth a policy",
    "GAIN_LATE": "the experiment took as many days as it may, without a result",
    "GAIN_LOST": "against the runs of the hold-out, the promoted policy makes runs longer, or a "
    "doubt about its gain stays",
    "GAIN_DOUBTED": "the newest treated runs took longer than expected: the hold-out is widened, "
    "to find out",
    "GAIN_KEPT": "the wider hold-out shows the gain",
    "SHADOW_FAILED": "answers of the policy failed in shadow mode",
    "SHADOW_SILENT": "the policy had no answer in shadow mode",
    "NEVER_EXPOSED": "no run came to a decision on which the arms differ",
    "BUDGET_SPENT": "the budget of harm is spent, or a twentieth of it by this trial alone",
    "TEAM_POLICY": "a policy of the team's decides at the same point of the job",
    "JOB_LEFT": "the definition no longer names the job or the point",
    "HELD": "a person holds the trial as it is",
    "RELEASED": "a person lets a held trial go on",
    "SKIPPED": "a person does not want the policy on this job",
    "PINNED": "a person keeps the policy for all runs, without a hold-out",
    "UNDONE": "a person takes the policy back",
    "DECIDED": "the look is decided: all its steps stand above",
    "DELIVERED": "all that was decided is in force",
}
