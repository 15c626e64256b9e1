import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Just so much of AWS Systems Manager as to answer for parameters. Source: its API reference, GetParameter. */
export async function serveParameters(parameters: ReadonlyMap<string, string>) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { Name = '', WithDecryption } = JSON.parse(Buffer.concat(chunks).toString())
    const value = WithDecryption === true ? parameters.get(Name) : undefined
    response.writeHead(value === undefined ? 400 : 200, { 'content-type': 'application/x-amz-json-1.1' })
    response.end(
      JSON.stringify(
        value === undefined
          ? { __type: 'ParameterNotFound' }
          : { Parameter: { Name, Type: 'SecureString', Value: value, Version: 1 } },
      ),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    // A server that listens on TCP has an address with a port.
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
