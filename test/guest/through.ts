import { request } from 'node:http'

export type Asked = { proxy: string; url: string; credentials?: string }

const headersOf = ({ url, credentials }: Asked) => ({
  host: new URL(url).host,
  connection: 'close',
  ...(credentials && { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }),
})

/** What a proxy answers to a request for a page: the status, and the page. */
export function fetched(asked: Asked): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(asked.proxy)
  return new Promise((resolve, reject) => {
    request({ hostname, port, path: asked.url, headers: headersOf(asked), agent: false }, (answer) => {
      let body = ''
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }))
    })
      .on('error', reject)
      .end()
  })
}

/** The same through a tunnel: the status of the CONNECT, and the page that came through. */
export function tunnelled(asked: Asked): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(asked.proxy)
  const { host, pathname } = new URL(asked.url)
  return new Promise((resolve, reject) => {
    request({ hostname, port, method: 'CONNECT', path: host, headers: headersOf(asked), agent: false })
      .on('connect', (answer, socket) => {
        const status = answer.statusCode ?? 0
        if (status !== 200) {
          socket.destroy()
          return resolve({ status, body: '' })
        }
        let body = ''
        socket.setEncoding('utf8').on('data', (text: string) => {
          body += text
        })
        socket.on('end', () => resolve({ status, body }))
        socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      })
      .on('error', reject)
      .end()
  })
}
