import Foundation
import Synchronization
import TestCertificates
import TestSupport

/// An honest foreign client: Python's `websockets`, with hand-written JSON of the protocol.
final class ForeignClient: ControlClient {
    let ledger: ControlClientRecord
    private let program: ChildProgram
    private let rests: Mailbox

    /// The script's reports.
    private final class Mailbox: Sendable {
        let isResting = Mutex(false)
        let isReady = Mutex(false)
        /// Set when the script is to end.
        let isLeaving = Mutex(false)
    }

    init(name: String, python: String, port: Int, isSecure: Bool) async throws {
        let (ledger, rests) = (ControlClientRecord(name: name), Mailbox())
        self.ledger = ledger
        self.rests = rests
        let script = Bundle.module.path(forResource: "foreign", ofType: "py") ?? "foreign.py"
        let url = isSecure ? "wss://localhost:\(port)/" : "ws://127.0.0.1:\(port)/"
        program = try ChildProgram(
            python, [script, url, "honest/\(name)"] + (isSecure ? [TestCertificate.path("ca.pem")] : [])
        ) { line in
            let words = line.split(separator: " ", maxSplits: 1)
            switch words.first {
            case "ready": rests.isReady.withLock { $0 = true }
            case "resting": rests.isResting.withLock { $0 = true }
            case "took":
                for word in words.last?.split(separator: " ") ?? [] {
                    if let time = Int(word) { ledger.took(.microseconds(time)) }
                }
            default:
                if !rests.isLeaving.withLock({ $0 }) { ledger.problem(line) }
            }
        }
        let program = program
        let isReady = await eventually(within: .seconds(30)) { rests.isReady.withLock { $0 } || !program.isRunning }
        guard isReady, program.isRunning else {
            throw ChildProgram.DidNotStart(description: "the foreign client: \(program.lines.suffix(5))")
        }
    }

    func pause() async -> Bool {
        rests.isResting.withLock { $0 = false }
        program.tell("pause")
        return await eventually(within: .seconds(30)) { rests.isResting.withLock { $0 } || !program.isRunning }
    }

    func resume() { program.tell("go") }

    func stop() async {
        rests.isLeaving.withLock { $0 = true }
        program.kill()
    }
}
