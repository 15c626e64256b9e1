import type { Connection } from './connection.ts'
import { allPhases, type LeasedRow, listRows, readLeased } from './rows.ts'
import { Unmet, UsageError } from './usage.ts'

/**
 * The proxy that a person means: by its uid, else the one of that name. One that stands goes before one that is gone, so
 * that a deletion sent to a name by mistake hides nothing.
 * @throws {Unmet} when there is none @throws {UsageError} when there are several
 */
export async function findProxy(id: string, { rows: client, place }: Connection): Promise<LeasedRow> {
  const table = place('table')
  const found = await readLeased(client, table, id)
  if (found && found.row.phase !== 'Deleted') return found
  const named = (await listRows(client, table, allPhases)).filter(({ name }) => name === id)
  const standing = named.filter(({ phase }) => phase !== 'Deleted')
  if (found && standing.length === 0) return found
  const [uid, ...others] = (standing.length > 0 ? standing : named).map((row) => row.uid).sort()
  if (others.length > 0) {
    throw new UsageError(
      `${others.length + 1} proxies are called ${id}; say which: ${[uid, ...others].join(', ')}`,
    )
  }
  const one = uid === undefined ? undefined : await readLeased(client, table, uid)
  if (!one) throw new Unmet(`there is no proxy with the uid or name ${id}`)
  return one
}
