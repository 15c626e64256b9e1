import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import dynalite from 'dynalite'

/** DynamoDB on a loopback port. */
export type TableServer = { port: number; close(): Promise<void> }

/**
 * Serves the DynamoDB wire protocol with dynalite, the data in LevelDB under `folder`. What it lacks (transactions, TTL,
 * the item inside a failed condition) our code does not rely on.
 */
export async function serveTables(options: { folder: string; port: number }): Promise<TableServer> {
  mkdirSync(options.folder, { recursive: true })
  const server = dynalite({ path: options.folder, createTableMs: 0 })
  server.listen(options.port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    port: address.port,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()))
        server.closeAllConnections()
      }),
  }
}
