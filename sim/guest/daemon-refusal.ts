/** The program does not start; `message` is what it prints. */
export class DaemonRefusal extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DaemonRefusal'
  }
}
