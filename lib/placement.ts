import { hashNumber } from './names.ts'

/** Rendezvous hashing: the node whose hash with the uid is highest, so that losing a node moves only its own proxies. */
export function byHash<T extends { node: string }>(uid: string, candidates: readonly T[]): T | undefined {
  return highest(candidates, ({ node }) => hashNumber(`${uid}/${node}`))
}

/** The node with the fewest rows; among equals by hash. */
export function byFewest<T extends { node: string }>(
  uid: string,
  candidates: readonly T[],
  counts: ReadonlyMap<string, number>,
): T | undefined {
  const fewest = Math.min(...candidates.map(({ node }) => counts.get(node) ?? 0))
  return byHash(
    uid,
    candidates.filter(({ node }) => (counts.get(node) ?? 0) === fewest),
  )
}

function highest<T>(list: readonly T[], score: (item: T) => number): T | undefined {
  return list.reduce<T | undefined>(
    (best, item) => (best && score(best) >= score(item) ? best : item),
    undefined,
  )
}
