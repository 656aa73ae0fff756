import Commands
import Glibc
import Trebuchet
import TrebuchetServices

/// Reports on standard error when a room is joined and why a join fails, each reason once. Ends the process with status 1 if
/// the rules of the server reject the first join.
struct RoomReporter {
    let command: String
    private var wasConnected = false
    private var lastError: String?

    init(command: String) { self.command = command }

    mutating func report(isConnected: Bool, _ error: (any Error)?) {
        let text = error.map { ErrorHint.text($0, of: command) }
        if let text, text != lastError { Console.error("trebuchet \(command): \(text)") }
        lastError = text
        if case .forbidden? = error as? RoomError, !wasConnected { exit(1) }
        if isConnected != wasConnected {
            Console.error("trebuchet \(command): \(isConnected ? "joined" : "not joined; retrying")")
        }
        wasConnected = isConnected
    }
}
