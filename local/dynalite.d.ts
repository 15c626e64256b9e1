/** The part of dynalite that we use; it brings no types of its own. */
declare module 'dynalite' {
  import type { Server } from 'node:http'
  export default function dynalite(options: { path?: string; createTableMs?: number }): Server
}
