import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

/** A repository of these packages for apt, on this host's loopback; `asked` are the paths that were fetched. */
export async function serveMirror(
  folder: string,
): Promise<{ port: number; asked: string[]; close(): Promise<void> }> {
  const files = new Map<string, Buffer>()
  for (const name of readdirSync(folder)) {
    // The colon of an epoch stands escaped in the name of the file; the repository needs no such names.
    files.set(name.replaceAll('%', '_'), readFileSync(join(folder, name)))
  }
  const entries = readdirSync(folder).map((name) => {
    const bytes = files.get(name.replaceAll('%', '_')) ?? Buffer.alloc(0)
    const control = execFileSync('dpkg-deb', ['--field', join(folder, name)], { encoding: 'utf8' }).trim()
    const hash = createHash('sha256').update(bytes).digest('hex')
    return `${control}\nFilename: ./${name.replaceAll('%', '_')}\nSize: ${bytes.length}\nSHA256: ${hash}\n`
  })
  files.set('Packages', Buffer.from(entries.join('\n')))
  const asked: string[] = []
  const server = createServer((request, response) => {
    // apt escapes the + of a version.
    const path = decodeURIComponent(request.url ?? '').replace(/^(?:\/\.)?\//, '')
    asked.push(path)
    const bytes = files.get(path)
    response.writeHead(bytes ? 200 : 404)
    response.end(bytes)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const place = server.address()
  if (place === null || typeof place === 'string') throw new Error('no port was given')
  return {
    port: place.port,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
