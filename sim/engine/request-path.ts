import type { EngineCall } from '../types.ts'
import type { Ctx } from './endpoint.ts'
import { PveError, refuseParams } from './errors.ts'

export function notImplemented(call: EngineCall): never {
  const path = `/${unescapePath(call.path)
    .split('/')
    .filter((part) => part !== '')
    .join('/')}`
  throw new PveError(501, `Method '${call.method} ${path}' not implemented`)
}

export function unescapePath(path: string): string {
  return decodeBytes(path.split('?')[0] ?? '')
}

/** Percent escapes as bytes of UTF-8; what is no escape stays. */
function decodeBytes(text: string): string {
  const bytes = [...Buffer.from(text, 'utf8')]
  const decoded: number[] = []
  for (let index = 0; index < bytes.length; index++) {
    const hex = bytes[index] === 0x25 ? String.fromCharCode(bytes[index + 1] ?? 0, bytes[index + 2] ?? 0) : ''
    if (/^[0-9a-fA-F]{2}$/.test(hex)) {
      decoded.push(Number.parseInt(hex, 16))
      index += 2
    } else {
      decoded.push(bytes[index] ?? 0)
    }
  }
  return Buffer.from(decoded).toString('utf8')
}

/** A parameter that repeats one of the path must say the same. */
export function joinParams(call: EngineCall, pathParams: Record<string, string>): Ctx['params'] {
  const params: Ctx['params'] = {}
  for (const [name, value] of Object.entries(call.params)) {
    if (name === '_dc') continue
    const inPath = pathParams[name]
    if (inPath !== undefined && inPath !== String(value))
      refuseParams({ [name]: 'duplicate parameter (already defined in URI) with conflicting values!' })
    params[name] = value
  }
  return { ...params, ...pathParams }
}
