import type { Finding } from './event.ts'
import type { ClusterFacts, TokenFacts } from './facts.ts'
import { about, orFine, ROLES, SOON_MS } from './finding.ts'

/**
 * Facts → findings about one stored token: is it there, is it accepted, does it end soon? The second is there for a rotation
 * only, so a fault of one is a warning as long as the other will do.
 */
export function judgeToken(
  facts: TokenFacts,
  index: number,
  { name, tokens }: ClusterFacts,
  now: number,
): Finding[] {
  const { source, id, unreadable, accepted, expiry } = facts
  const say = about({ target: 'token', where: `${name}, ${id ?? source}` })
  const others = tokens.some((other) => other !== facts && other.accepted?.known)
  const bad = others ? say.warn : say.fail
  if (unreadable !== undefined) return [bad('TokenMissing', unreadable)]
  if (id === undefined) {
    const text = `there is no token in ${source}`
    if (index === 0) return [bad('TokenMissing', text)]
    // A second one is there during a rotation only, and nobody misses it while the first will do.
    return others ? [] : [say.note('NotSeen', `${text}: it is only for a rotation`)]
  }
  if (!accepted) return [say.note('NotSeen', 'no endpoint could be asked')]
  const [user = '', token = ''] = id.split('!')
  if (!accepted.known) {
    if (accepted.code !== 'Unauthorized') return [say.untold(`token in ${source}`, accepted)]
    const text = `the token in ${source} is refused: it is wrong, expired or disabled, or its user is`
    return [bad('TokenRefused', text, `pveum user token list ${user}; pveum user list`)]
  }
  if (!expiry) return [say.fine('accepted')]
  if (!expiry.known) return [say.fine('accepted'), say.untold('its end', expiry)]
  if (!expiry.value)
    return [say.fine('accepted'), say.note('NotSeen', 'when it ends: our token may not see it', ROLES)]
  const ends = [
    {
      what: 'the token',
      at: expiry.value.tokenAtMs,
      line: `pveum user token modify ${user} ${token} --expire 0`,
    },
    { what: `its user ${user}`, at: expiry.value.userAtMs, line: `pveum user modify ${user} --expire 0` },
  ]
  const soon = ends.flatMap(({ what, at, line }) =>
    at !== undefined && at - now < SOON_MS
      ? [say.warn('TokenExpires', `${what} ends ${new Date(at).toISOString()}`, line)]
      : [],
  )
  return orFine(soon, say.fine('accepted'))
}
