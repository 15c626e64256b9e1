import {
  BridgesAnswer,
  CertificatesAnswer,
  ClusterStatusAnswer,
  ConfigAnswer,
  InterfacesAnswer,
  MaybeUpid,
  NextIdAnswer,
  NodesAnswer,
  Nothing,
  PermissionsAnswer,
  PoolsAnswer,
  ResourcesAnswer,
  StoragesAnswer,
  TaskStatusAnswer,
  TasksAnswer,
  TimeAnswer,
  UpidAnswer,
  UsersAnswer,
  VersionAnswer,
  VmStatusAnswer,
  VolumesAnswer,
} from './answers.ts'
import { calls } from './calls.ts'
import type { Form } from './request.ts'
import type { Send } from './transport.ts'
import type { Upid } from './upid.ts'
import type { Vm } from './vm.ts'

export type Api = ReturnType<typeof createApi>

type OnNode = { node: string }
type OnStorage = { node: string; storage: string }
type OfTask = { node: string; upid: Upid }

const mebibyte = 1024 * 1024

/** One function per endpoint: its path, its form and the shape of its answer, and nothing of what it is for. */
export function createApi(send: Send) {
  return {
    version: () => send({ spec: calls.version, answer: VersionAnswer }),
    permissions: (form: { path: string }) =>
      send({ spec: calls.permissions, form, answer: PermissionsAnswer }),
    /** Refused with AlreadyExists when the number is taken, by a container too. */
    nextId: (form: { vmid: number }) => send({ spec: calls.nextId, form, answer: NextIdAnswer }),
    clusterStatus: () => send({ spec: calls.clusterStatus, answer: ClusterStatusAnswer }),
    resources: () => send({ spec: calls.resources, form: { type: 'vm' }, answer: ResourcesAnswer }),
    nodes: () => send({ spec: calls.nodes, answer: NodesAnswer }),
    users: () => send({ spec: calls.users, form: { full: true }, answer: UsersAnswer }),
    pool: (form: { poolid: string }) => send({ spec: calls.pool, form, answer: PoolsAnswer }),
    time: (path: OnNode) => send({ spec: calls.time, path, answer: TimeAnswer }),
    /** Those of the software-defined network too. */
    bridges: (path: OnNode) =>
      send({ spec: calls.bridges, path, form: { type: 'any_bridge' }, answer: BridgesAnswer }),
    certificates: (path: OnNode) => send({ spec: calls.certificates, path, answer: CertificatesAnswer }),

    vmConfig: (path: Vm) => send({ spec: calls.vmConfig, path, answer: ConfigAnswer }),
    templateConfig: (path: Vm) => send({ spec: calls.templateConfig, path, answer: ConfigAnswer }),
    vmStatus: (path: Vm) => send({ spec: calls.vmStatus, path, answer: VmStatusAnswer }),
    /** To the node that holds the template; its task carries the template's number. */
    clone: (path: Vm, form: Form & { newid: number }) =>
      send({ spec: calls.clone, path, form, answer: UpidAnswer, cloneOf: path.vmid }),
    configure: (path: Vm, form: Form) => send({ spec: calls.configure, path, form, answer: Nothing }),
    /** PVE 7 answers null, having done it. */
    resize: (path: Vm, form: { disk: string; size: string; digest?: string }) =>
      send({ spec: calls.resize, path, form, answer: MaybeUpid }),
    start: (path: Vm) => send({ spec: calls.start, path, answer: UpidAnswer }),
    stop: (path: Vm) => send({ spec: calls.stop, path, answer: UpidAnswer }),
    destroy: (path: Vm, form: { purge: boolean; 'destroy-unreferenced-disks': boolean }) =>
      send({ spec: calls.destroy, path, form, answer: UpidAnswer }),
    interfaces: (path: Vm) =>
      send({
        spec: calls.interfaces,
        path,
        answer: InterfacesAnswer,
        patience: 'agentMs',
        maxBodyBytes: mebibyte,
      }),

    taskStatus: (path: OfTask) => send({ spec: calls.taskStatus, path, answer: TaskStatusAnswer }),
    tasks: (path: OnNode, form: Form) => send({ spec: calls.tasks, path, form, answer: TasksAnswer }),
    cancel: (path: OfTask) => send({ spec: calls.cancel, path, answer: Nothing }),

    storages: (path: OnNode) => send({ spec: calls.storages, path, answer: StoragesAnswer }),
    volumes: (path: OnStorage, form: { vmid?: number; content: string }) =>
      send({ spec: calls.volumes, path, form, answer: VolumesAnswer }),
    isos: (path: OnStorage) =>
      send({ spec: calls.isos, path, form: { content: 'iso' }, answer: VolumesAnswer }),
    upload: (path: OnStorage, file: { name: string; bytes: Uint8Array }, secrets: readonly string[] = []) =>
      send({ spec: calls.upload, path, file, secrets, answer: UpidAnswer, patience: 'uploadMs' }),
    deleteVolume: (path: OnStorage & { volume: string }) =>
      send({ spec: calls.deleteVolume, path, answer: MaybeUpid }),
  }
}
