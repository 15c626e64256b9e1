import { type Complaint, complaintLine } from '../lib/wanted.ts'

/** The command cannot be carried out as it was given: the fault is on the command line or in a file it names. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A document that cannot be taken, with everything that is wrong with it. */
export const refused = (what: string, complaints: Complaint[]) =>
  new UsageError([`${what}:`, ...complaints.map((one) => `  ${complaintLine(one)}`)].join('\n'))

/** The wish itself was not met, and what it says has been said. Exit code 1 unless said otherwise. */
export class Unmet extends Error {
  override readonly name = 'Unmet'
  readonly exitCode: number
  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}
