package support

import (
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// finished is the reason of a job that will not run any more.
func finished(job domain.Standing) Reason {
	again := fmt.Sprintf("mend what the error names, then put it back with all its attempts: holdfast jobs redrive %s", job.ID)
	if job.Status == domain.StatusFailed {
		return Reason{Code: Failed, Text: fmt.Sprintf("it failed for good%s, at attempt %s%s", ending(job), attempt(job), lastError(job)), Do: again}
	}
	if job.Status == domain.StatusDeadLetter {
		return Reason{Code: DeadLetter, Text: fmt.Sprintf("its attempts are spent, %s%s%s", attempt(job), ending(job), lastError(job)), Do: again}
	}
	text := fmt.Sprintf("it is done: completed%s, at attempt %s", ending(job), attempt(job))
	if job.Archived {
		text += ", and archived"
	}
	return Reason{Code: Completed, Text: text, Do: "nothing: to do it again, enqueue another job"}
}

// ending says when and by whom the job was ended.
func ending(job domain.Standing) (text string) {
	if job.FinishedAt != nil {
		text = " at " + stamp(*job.FinishedAt)
	}
	if job.FinishedBy != nil {
		text += " by " + *job.FinishedBy
	}
	return text
}

func attempt(job domain.Standing) string {
	return fmt.Sprintf("%d of %d", job.Attempts, job.MaxAttempts)
}

func lastError(job domain.Standing) string {
	if job.LastError == nil {
		return ""
	}
	return "; the last error is " + excerpt(*job.LastError)
}
