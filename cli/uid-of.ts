import type { Connection } from './connection.ts'
import { allPhases, listRows, readLeased } from './rows.ts'
import { Unmet, UsageError } from './usage.ts'

/**
 * The uid that a person means: a uid as it is, else the one proxy of that name. One that stands goes before one that is
 * gone, so that a deletion sent to a name by mistake hides nothing.
 * @throws {Unmet} when there is none @throws {UsageError} when there are several
 */
export async function uidOf(id: string, { rows: client, place }: Connection): Promise<string> {
  const read = await readLeased(client, place('table'), id)
  if (read && read.row.phase !== 'Deleted') return id
  const named = (await listRows(client, place('table'), allPhases)).filter(({ name }) => name === id)
  const standing = named.filter(({ phase }) => phase !== 'Deleted')
  if (read && standing.length === 0) return id
  const [one, ...others] = (standing.length > 0 ? standing : named).map(({ uid }) => uid).sort()
  if (one === undefined) throw new Unmet(`there is no proxy with the uid or name ${id}`)
  if (others.length === 0) return one
  throw new UsageError(
    `${others.length + 1} proxies are called ${id}; say which: ${[one, ...others].join(', ')}`,
  )
}
