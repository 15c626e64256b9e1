import type { TokenEntry } from '../lib/proxmox/index.ts'
import { UsageError } from './usage.ts'

/**
 * Where a rotation stands, told from what is stored and what is on the cluster, so that one which died goes on:
 * `make` a successor, `switch` to the one that is stored second, or `retire` the one that was replaced.
 */
export type Phase = { do: 'make' | 'switch' | 'retire'; old: string; fresh: string }

/** Ids of the tokens in the first and the second source. */
type Stored = { first: string; second?: string | undefined }

/** `ctl` is followed by `ctl-b`, that by `ctl-a`, and so on in turn. */
export function successorOf(tokenId: string): string {
  const [, stem = tokenId, letter] = /^(.*?)(?:-([ab]))?$/.exec(tokenId) ?? []
  return `${stem}-${letter === 'b' ? 'a' : 'b'}`
}

/** The comment that a successor bears on the cluster. The moment tells who is younger when two replaced each other in turn. */
export const successorComment = (old: string, now: number): string =>
  `egress-proxies: replaces ${old} since ${new Date(now).toISOString()}`

const read = (comment = '') => {
  const [, replaced, since] = /^egress-proxies: replaces (\S+) since (\S+)$/.exec(comment) ?? []
  return replaced === undefined || since === undefined ? undefined : { replaced, since }
}

export const isSuccessor = (entry: TokenEntry, old: string): boolean => read(entry.comment)?.replaced === old

/**
 * @throws {UsageError} when it cannot be told which of two stored tokens is the old one, and `old` does not say so
 */
export function phaseOf(stored: Stored, entries: readonly TokenEntry[] | undefined, old?: string): Phase {
  const { first, second } = stored
  if (old !== undefined) return asTold(stored, old)
  if (second === undefined) return { do: 'make', old: first, fresh: successorOf(first) }
  const story = (id: string) => read(entries?.find((entry) => entry.id === id)?.comment)
  const [ofFirst, ofSecond] = [story(first), story(second)]
  // Died between the two writes of the switch: both sources hold the new one.
  if (first === second && ofFirst) return { do: 'retire', old: ofFirst.replaced, fresh: first }
  const firstReplaces = first !== second && ofFirst?.replaced === second
  const secondReplaces = first !== second && ofSecond?.replaced === first
  if (firstReplaces && !(secondReplaces && ofSecond.since > ofFirst.since))
    return { do: 'retire', old: second, fresh: first }
  if (secondReplaces) return { do: 'switch', old: first, fresh: second }
  // A copy of the first, or a token that is no more, stands in nobody's way.
  if (entries && (first === second || isGone(stored, entries)))
    return { do: 'make', old: first, fresh: successorOf(first) }
  throw new UsageError(
    [
      `${first} is stored first and ${second} second, and nothing tells which is the old one. Say it:`,
      `  --old '${first}'  goes over to the second`,
      ...(first === second ? [] : [`  --old '${second}'  keeps the first, and removes the second`]),
    ].join('\n'),
  )
}

function asTold({ first, second }: Stored, old: string): Phase {
  if (second !== undefined && second !== first && old === first)
    return { do: 'switch', old: first, fresh: second }
  if (old !== first && (old === second || second === undefined || second === first))
    return { do: 'retire', old, fresh: first }
  if (old === first) return { do: 'make', old: first, fresh: successorOf(first) }
  throw new UsageError(`--old: got ${old}, wanted one of the two that are stored: ${first}, ${second}`)
}

/** True when the second is of the first's user and that user has no such token any more. */
function isGone({ first, second = '' }: Stored, entries: readonly TokenEntry[]): boolean {
  return second.split('!')[0] === first.split('!')[0] && !entries.some(({ id }) => id === second)
}
