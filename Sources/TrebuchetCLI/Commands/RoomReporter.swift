import Commands
import Trebuchet

/// Says on standard error when a room is joined and what is wrong with it, each once.
struct RoomReporter {
    let command: String
    private var wasConnected = false
    private var lastError: String?

    init(command: String) { self.command = command }

    mutating func report(isConnected: Bool, _ error: (any Error)?) {
        let text = error.map { LogLine.of("\($0)") }
        if let text, text != lastError { Console.error("trebuchet \(command): \(text)") }
        lastError = text
        if isConnected != wasConnected {
            Console.error("trebuchet \(command): \(isConnected ? "joined" : "not joined; trying again")")
        }
        wasConnected = isConnected
    }
}
