import Commands
import TrebuchetWire
import Trebuchet

/// `trebuchet call`: calls a method and prints its result.
enum CallCommand {
    static let spec = CommandSpec(
        name: "call",
        summary: "call a method of an actor and print the result as JSON",
        operands: "<actor> <method> [argument …]",
        operandCount: 2...34,
        options: RemoteURL.address + [
            RemoteURL.token,
            OptionSpec("--timeout", "SECONDS", "maximum time for the call (30)"),
        ],
        discussion: """
            Arguments are JSON:
              trebuchet call todos 'addTodo(title:)' '"Milk"'
              trebuchet call counter 'add(_:)' 3
            Prints an error on standard error and exits with 1.
            """,
        run: run)

    private static func run(_ arguments: ParsedArguments) async throws {
        let timeout = try arguments.double("--timeout", in: 0.001...86_400) ?? 30
        let values = try arguments.operands.dropFirst(2).map(json)
        CommandTimeout.current?.limit(seconds: timeout)
        let client = try await RemoteURL.connectWithToken(arguments)
        CommandTimeout.current?.stop()
        let result = try await withDeadline(.seconds(timeout)) {
            try await client.call(actor: arguments.operands[0], target: arguments.operands[1], arguments: values)
        }
        if let result { Console.print(LogLine.ofJSON(String(decoding: result, as: UTF8.self))) }
        await client.close()
    }

    /// Returns an argument that is JSON. Checked here, since the server's error would not mention quoting.
    private static func json(_ text: String) throws(UsageError) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard !JSONText.isValue(bytes) else { return bytes }
        throw JSONArgument.invalid(text)
    }
}
