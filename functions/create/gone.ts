import { fail, next, type Outcome } from '../../lib/outcome.ts'
import type { Row } from '../../lib/record.ts'

const AT_MOST = 3

/** The VM is gone, by proof: it is made again, but not for ever. */
export function madeAgain(row: Row): Outcome {
  if (row.lookedAgain < AT_MOST) {
    return next('clone', { lookedAgain: row.lookedAgain + 1, cloned: undefined, ended: undefined })
  }
  return fail('VmGone', `VM ${row.place?.vmid} was found gone ${AT_MOST + 1} times`)
}
