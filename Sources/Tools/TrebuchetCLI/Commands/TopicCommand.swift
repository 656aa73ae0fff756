import Commands
import SharedState
import Trebuchet
import TrebuchetServices
import TrebuchetWire

/// `trebuchet topic`: publishes to topics of rooms, and prints published events.
enum TopicCommand {
    static let spec = CommandSpec(
        name: "topic",
        summary: "publish and print events of the topic of a room",
        subcommands: [publish, subscribe],
        discussion: "The server must host rooms, as 'trebuchet serve' does.",
        run: { _ in })

    private static let publish = CommandSpec(
        name: "topic publish",
        summary: "publish an event to a topic",
        operands: "<room type> <room id> <topic> <event>",
        operandCount: 4...4,
        options: RemoteURL.options,
        discussion: """
            The event is JSON. Exits when the server has delivered it:
              trebuchet topic publish chat lobby emoji '{"name":"tada"}'
            """,
        run: { arguments in
            let event = try JSONArgument.value(arguments.operands[3])
            let backend = TrebuchetBackend(client: try await RemoteURL.connect(arguments))
            let channel = channel(arguments, backend)
            // The event waits for the join, and does not receive the reason of a failed join.
            let reporting = Task {
                var reporter = RoomReporter(command: "topic publish")
                for await value in channel.updates { reporter.report(isConnected: false, value.error) }
            }
            defer { reporting.cancel() }
            try await channel.publish(event)
            // Stop reporting, since leaving the room is no error of the event.
            reporting.cancel()
            await reporting.value
            await backend.leaveAllRooms()
            await backend.client.close()
        })

    private static let subscribe = CommandSpec(
        name: "topic subscribe",
        summary: "print each new event of a topic as one JSON line",
        operands: "<room type> <room id> <topic>",
        operandCount: 3...3,
        options: RemoteURL.options + [OptionSpec("--count", "N", "exit after N events")],
        discussion: """
            Reports the subscription, lost connections and reconnections on standard error. Earlier events are not
            printed:
              trebuchet topic subscribe chat lobby emoji
            """,
        run: { arguments in
            let count = try arguments.int("--count", in: 1...Int.max)
            let backend = TrebuchetBackend(client: try await RemoteURL.connect(arguments))
            let reporting = ConnectionReporter.follow(backend.client, of: "topic subscribe")
            try await UntilSignal.run { await printEvents(arguments, backend, count: count, until: $0) }
            reporting.cancel()
            CommandTimeout.current?.restart()
            await backend.leaveAllRooms()
            await backend.client.close()
        })

    private static func channel(
        _ arguments: ParsedArguments, _ backend: TrebuchetBackend
    ) -> Shared<TopicChannel<JSONValue>> {
        backend.withCurrent {
            Shared(
                .trebuchetTopic(
                    roomType: arguments.operands[0], topic: arguments.operands[2], roomId: arguments.operands[1]))
        }
    }

    private static func printEvents(
        _ arguments: ParsedArguments, _ backend: TrebuchetBackend, count: Int?, until end: UntilSignal
    ) async {
        let channel = channel(arguments, backend)
        channel.withLock { $0.maxEvents = 10_000 }
        var reporter = RoomReporter(command: "topic subscribe")
        var printed = 0
        for await value in channel.updates {
            if value.isConnected { end.serverAnswered() }
            reporter.report(isConnected: value.isConnected, value.error)
            guard value.hasEvent else { continue }
            let events = channel.withLock { channel in
                defer { channel.clearEvents() }
                return channel.events
            }
            for event in events {
                Console.print(LogLine.ofJSON(#"{"peer":"\#(event.peerId)","data":\#(JSONArgument.text(event.data))}"#))
                printed += 1
                if printed == count { return }
            }
        }
    }
}
