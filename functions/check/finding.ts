import type { Finding, FindingCode, Level } from './event.ts'
import type { Fact } from './facts.ts'

/** What is found of one target; what is right is said once, in a word. */
export type Verdict = {
  /** All is well with it. */
  fine(text: string): Finding
  /** Worth saying, and nothing is wrong. */
  note(code: FindingCode, text: string, line?: string): Finding
  warn(code: FindingCode, text: string, line?: string): Finding
  fail(code: FindingCode, text: string, line?: string): Finding
  /** A call that told nothing: for want of a right of ours, or for a reason of its own. */
  untold(what: string, fact: Fact<unknown> & { known: false }): Finding
}

export function about(subject: Pick<Finding, 'target' | 'where' | 'node'>): Verdict {
  const say =
    (level: Level) =>
    (code: FindingCode, text: string, line?: string): Finding => ({
      ...subject,
      level,
      code,
      text,
      ...(line === undefined ? {} : { line }),
    })
  const [note, warn, fail] = [say('ok'), say('warning'), say('failure')]
  return {
    fine: (text) => note('Fine', text),
    note,
    warn,
    fail,
    untold: (what, { code, reason }) => {
      if (code === 'Forbidden') return note('NotSeen', `${what}: our token may not see it`, ROLES)
      return warn('Unexpected', `${what}: ${reason}`, ...(code === 'Aborted' ? [BUSY] : []))
    },
  }
}

const BUSY =
  'egress check # once more: either side may have been busy; if it stays so, on the node: systemctl status pveproxy pvedaemon'

/** Prints the roles that let a check see everything. */
export const ROLES = 'egress check --role'

/** Adds the finding that all is well when nothing else was found. */
export const orFine = (findings: readonly Finding[], fine: Finding): Finding[] =>
  findings.some(({ level }) => level !== 'ok') ? [...findings] : [fine, ...findings]

export const percent = (part: number, whole: number) => Math.round((100 * part) / whole)
export const mebibytes = (bytes: number) =>
  bytes >= 1024 ** 3 ? `${(bytes / 1024 ** 3).toFixed(1)} GiB` : `${Math.floor(bytes / 1024 ** 2)} MiB`

/** Time enough for a person to renew what ends. */
export const SOON_MS = 14 * 86_400_000
