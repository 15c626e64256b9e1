import type { TokenSource } from './options.ts'

const memoryMs = 30_000
const atMost = 2

/**
 * The tokens worth trying for one call, in order: the known one, then after a refusal those of a fresh read, so that a
 * rotation in any order is safe. Every refusal costs 3 s at Proxmox, so a refused token is left out for a while.
 */
export function createTokens(source: TokenSource, now: () => number) {
  const refusedUntil = new Map<string, number>()
  // A file's last line often ends in a newline, which no header may hold.
  const read = async (fresh: boolean) =>
    (await source.get(fresh ? { fresh } : undefined)).slice(0, atMost).map((token) => token.trim())
  const refused = (token: string) => (refusedUntil.get(token) ?? 0) > now()

  return {
    /** `owner` is the id of the token that the call's task belongs to: only that one may see it. */
    async *candidates(owner?: string): AsyncGenerator<string> {
      const worthTrying = (await read(false)).filter((token) => !refused(token))
      const known = worthTrying.find((token) => token.startsWith(`${owner}=`)) ?? worthTrying[0]
      if (known === undefined) return
      yield known
      for (const token of await read(true)) {
        if (!refused(token)) yield token
      }
    },
    refuse(token: string): void {
      for (const [old, until] of refusedUntil) if (until <= now()) refusedUntil.delete(old)
      refusedUntil.set(token, now() + memoryMs)
    },
  }
}
