import { fail, next, type Outcome } from '../../lib/outcome.ts'
import type { Placed, Row } from '../../lib/record.ts'

const AT_MOST = 3

/** The VM is gone, by proof: it is made again, but not for ever. */
export function madeAgain(row: Row): Outcome {
  if (row.lookedAgain < AT_MOST) {
    return next('clone', { lookedAgain: row.lookedAgain + 1, cloned: undefined, ended: undefined })
  }
  return fail('VmGone', `VM ${row.place?.vmid} was found gone ${AT_MOST + 1} times`)
}

/** The VM stands still although it was started, or moved and stands still there: it is started again, but not for ever. */
export function startedAgain(row: Placed, node: string): Outcome {
  if (row.lookedAgain < AT_MOST)
    return next('start', { lookedAgain: row.lookedAgain + 1, place: { ...row.place, node } })
  return fail('VmBroken', `VM ${row.place.vmid} was found stopped ${AT_MOST + 1} times after it was started`)
}

/** The seed is not where the VM is now: it is sent again, but not for ever. */
export function seededAgain(row: Placed, node: string): Outcome {
  if (row.lookedAgain < AT_MOST) {
    const place = { ...row.place, node }
    return next('seed', { lookedAgain: row.lookedAgain + 1, place, ended: undefined })
  }
  return fail('VolumeMissing', `the seed ${row.seed} vanishes each time it is uploaded`)
}
