import { request } from 'node:http'

/** Fetches a plain page through a forward proxy, as `curl -x` does, and returns its first line. @throws {Error} */
export function fetchThrough(proxy: string, url: string, signal: AbortSignal): Promise<string> {
  const { hostname, port } = new URL(proxy)
  return new Promise((resolve, reject) => {
    const call = request(
      {
        hostname,
        port,
        path: url,
        headers: { host: new URL(url).host },
        agent: false,
        signal,
        timeout: 10_000,
      },
      (response) => {
        response.setEncoding('utf8')
        let body = ''
        response.on('data', (chunk: string) => {
          body += chunk
        })
        response.on('error', reject)
        response.on('end', () => {
          if (response.statusCode === 200) resolve(body.split('\n')[0] ?? '')
          else reject(new Error(`${proxy} answered ${response.statusCode} ${response.statusMessage}`))
        })
      },
    )
    call.on('timeout', () => call.destroy(new Error(`${proxy} did not answer in 10 s`)))
    call.on('error', reject)
    call.end()
  })
}
