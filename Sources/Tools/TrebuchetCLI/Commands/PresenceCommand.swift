import Commands
import Platform
import SharedState
import Trebuchet
import TrebuchetServices

/// `trebuchet presence`: joins a room and prints its members.
enum PresenceCommand {
    static let spec = CommandSpec(
        name: "presence",
        summary: "join a room and print its members",
        subcommands: [join],
        discussion: "The server must host rooms, as 'trebuchet serve' does.",
        run: { _ in })

    private static let join = CommandSpec(
        name: "presence join",
        summary: "join a room and print the other members at each change",
        operands: "<room type> <room id> [presence]",
        operandCount: 2...3,
        options: RemoteURL.options + [OptionSpec("--count", "N", "exit after N lines")],
        discussion: """
            The presence is JSON that the other members see ({}); each further JSON line on standard input replaces it. SIGINT
            leaves the room, the end of standard input does not. Reconnects after a lost connection; reports losses and
            reconnections on standard error:
              trebuchet presence join chat lobby '{"name":"Ada"}'
            """,
        run: { arguments in
            let presence = try JSONArgument.value(arguments.operands.count > 2 ? arguments.operands[2] : "{}")
            let count = try arguments.int("--count", in: 1...Int.max)
            let backend = TrebuchetBackend(client: try await RemoteURL.connect(arguments))
            let reporting = ConnectionReporter.follow(backend.client, of: "presence join")
            try await UntilSignal.run { await printPeers(arguments, backend, presence, count: count, until: $0) }
            reporting.cancel()
            CommandTimeout.current?.restart()
            await backend.leaveAllRooms()
            await backend.client.close()
        })

    private static func printPeers(
        _ arguments: ParsedArguments, _ backend: TrebuchetBackend, _ presence: JSONValue, count: Int?,
        until end: UntilSignal
    ) async {
        let room = backend.withCurrent {
            Shared(
                .trebuchetPresence(
                    roomType: arguments.operands[0], roomId: arguments.operands[1], initialPresence: presence))
        }
        let changing = Task { await showLines(of: room) }
        defer { changing.cancel() }
        var reporter = RoomReporter(command: "presence join")
        var shown: [Peer<JSONValue>]?
        var printed = 0
        for await value in room.updates {
            if value.isConnected { end.serverAnswered() }
            reporter.report(isConnected: value.isConnected, value.error)
            guard !value.isLoading, !value.isError, value.peersList != shown else { continue }
            shown = value.peersList
            end.serverAnswered()
            let peers = value.peersList.map { #"{"id":"\#($0.id)","data":\#(JSONArgument.text($0.data))}"# }
            Console.print(LogLine.ofJSON(#"{"peers":[\#(peers.joined(separator: ","))]}"#))
            printed += 1
            if printed == count { return }
        }
    }

    /// Publishes lines of standard input as presence; reports and skips invalid JSON.
    private static func showLines(of room: Shared<RoomPresence<JSONValue>>) async {
        let (lines, typed) = AsyncStream.makeStream(of: String.self)
        // A separate thread, since reading blocks. It ends with the process.
        startThread {
            while let line = readLine() { typed.yield(line) }
            typed.finish()
        }
        for await line in lines where line.contains(where: { !$0.isWhitespace }) {
            do {
                let presence = try JSONArgument.value(line)
                try await room.update { $0 = presence }
            } catch {
                Console.error("trebuchet presence join: \(LogLine.of("\(error)"))")
            }
        }
    }
}
