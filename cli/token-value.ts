/** The value of an API token, taken apart. The name is no secret; the value as a whole is. */
export type TokenValue = { id: string; user: string; value: string }

// Source: pve-access-control AccessControl.pm (user names, token ids); secrets are UUIDs, and older hosts took others.
const SHAPE = /^(([^\s:/=!@;]+@[A-Za-z][\w.-]+)![A-Za-z][\w.-]+)=[^\s;=!]+$/

/** Undefined for what is no token. Nothing is ever said about a value but that it is none. */
export function parseToken(text: string): TokenValue | undefined {
  const value = text.trim()
  const [, id, user] = SHAPE.exec(value) ?? []
  return id === undefined || user === undefined ? undefined : { id, user, value }
}

export const WANTED_TOKEN =
  'wanted one line user@realm!name=secret, such as egress@pve!ctl=xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'
