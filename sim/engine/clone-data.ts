import type { Asked, Piece } from './clone-check.ts'
import { vmOn } from './cluster.ts'
import { die } from './errors.ts'
import type { Run } from './program.ts'
import type { Conf, Volume } from './state.ts'
import { findVolume, parseVolumeId } from './storage.ts'

export type CloneData = Asked & {
  caller: string
  pieces: Piece[]
  /** How many pieces are done. */
  done: number
  /** Set once the placeholder stands: from then on a failure cleans up. */
  conf?: Conf
  made: { storage: string; name: string }[]
  current?: string
}

export type CloneRun = Run<CloneData>

export function presentPiece({ data }: CloneRun): Piece {
  const piece = data.pieces[data.done]
  if (!piece) throw new Error('all drives of the clone are done')
  return piece
}

export const storageOf = (data: CloneData, piece: Piece): string =>
  data.storage ?? parseVolumeId(piece.source).storage

export function sourceVolume({ cluster, node }: CloneRun, piece: Piece): Volume {
  return (
    findVolume(cluster, node, parseVolumeId(piece.source)) ?? die(`volume '${piece.source}' does not exist`)
  )
}

export const isRunning = ({ cluster, node, data }: CloneRun): boolean =>
  vmOn(cluster, node, data.vmid)?.run !== undefined

export function madeVolume({ cluster, data, node }: CloneRun): Volume {
  const volume =
    data.current === undefined ? undefined : findVolume(cluster, node, parseVolumeId(data.current))
  return volume ?? die(`volume '${data.current}' does not exist`)
}
