import type { ParamValue } from '../types.ts'
import { unescapeUri } from './head.ts'

export type Params = Record<string, ParamValue>

/**
 * Decodes a query or a form body with the habits of pveproxy: `;` separates like `&`, and a value ends at its second `=`,
 * so an unescaped one cuts it short. A repeated key becomes a list. Source: captures 02, "unencoded = in value".
 */
export function decodeForm(text: string): Params {
  // Names are the caller's: `constructor` is one like any other.
  const params = new Map<string, ParamValue>()
  for (const pair of text.split(/[&;]/)) {
    const [key = '', value = ''] = pair.split('=').map((part) => unescapeUri(part.replaceAll('+', ' ')))
    if (pair === '') continue
    const earlier = params.get(key)
    if (earlier === undefined) params.set(key, value)
    else params.set(key, Array.isArray(earlier) ? [...earlier, value] : [String(earlier), value])
  }
  return Object.fromEntries(params)
}
