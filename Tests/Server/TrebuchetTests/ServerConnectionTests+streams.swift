import Bytes
import Networking
import TestSupport
import Testing
import TrebuchetTesting
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// On the pool, so that its streams never start at once.
@Trebuchet(executor: .concurrent)
private distributed actor PoolActor {
    @StreamedState var state: Int = 0
}

/// Messages that a connection sends to its observers.
extension ServerConnectionTests {
    @Test("a stream starts with its name and the newest value, follows the state, and ends at its client's request")
    func streams() async {
        let rig = await Rig()
        _ = await rig.observe(1)
        #expect(await rig.waitFor(#""type":"streamData""#))
        let begun = await rig.texts
        #expect(
            begun.first?.contains(#""type":"streamStart","payload":{"streamID":"s1","callID":"1","actorID":"list""#)
                == true)
        let change = await rig.call(2, "list", "add(title:)", "\"milk\"")
        // The state first, then the response.
        #expect(change.count == 2 && change.first?.contains("milk") == true && change.last == result(2, "1"))
        #expect(await rig.on { [$0.streams.count, Int($0.streamUsage.streams)] } == [1, 1])
        let ended = await rig.receive(
            #"{"type":"streamEnd","payload":{"streamID":"s1","reason":"clientUnsubscribed"}}"#)
        #expect(
            ended.first?.contains(#""type":"streamEnd","payload":{"streamID":"s1","reason":"clientUnsubscribed"}"#)
                == true)
        #expect(
            await rig.receive(#"{"type":"streamEnd","payload":{"streamID":"s1","reason":"clientUnsubscribed"}}"#) == [])
        #expect(await rig.on { [$0.streams.count, Int($0.streamUsage.streams)] } == [0, 0])
        #expect(await rig.on { $0.shard.context.quotas.count(.streams) } == 0)
        #expect(await rig.call(3, "list", "add(title:)", "\"bread\"") == [result(3, "2")])
    }

    @Test("the streams of a connection, with and without filter, are bounded")
    func streamLimits() async {
        let rig = await Rig {
            $0.streams.perConnection = 2
            $0.filters.perConnection = 1
        }
        func filtered(_ number: Int) async -> [String] {
            await rig.receive(
                #"{"type":"invocation","payload":{"callID":"\#(number)","actorID":"list","targetIdentifier":"observeState","#
                    + #""filter":{"path":"/items"}}}"#)
        }
        _ = await filtered(1)
        #expect(await eventually { await rig.on { $0.streams.count } == 1 })
        let second = await filtered(2)
        #expect(
            second.first?.contains(
                "this connection has 1 stream with a filter (ServerLimits.filters.perConnection)") == true)
        _ = await rig.observe(3)
        #expect(await eventually { await rig.on { $0.streams.count } == 2 })
        let third = await rig.observe(4)
        #expect(
            third.first?.contains("this connection has 2 streams (ServerLimits.streams.perConnection)") == true)
        #expect(await rig.on { [Int($0.streamUsage.streams), Int($0.streamUsage.filtered)] } == [2, 1])
        await rig.receive(#"{"type":"streamEnd","payload":{"streamID":"s1","reason":"clientUnsubscribed"}}"#)
        #expect(await rig.on { [Int($0.streamUsage.streams), Int($0.streamUsage.filtered)] } == [1, 0])
        #expect(await rig.on { $0.shard.context.quotas.count(.filters) } == 0)
    }

    @Test("a stream resumes at its position, or at the oldest version that the server has", arguments: [true, false])
    func resumed(isSameEpoch: Bool) async {
        let rig = await Rig()
        _ = await rig.observe(1)
        #expect(await rig.waitFor(#""type":"streamData""#))
        _ = await rig.call(2, "list", "add(title:)", "\"milk\"")
        let epoch = await rig.on { $0.streams.values.first?.broadcaster.producer.epoch ?? "" }
        let seen = await rig.on { $0.streams.values.first?.sent ?? 0 }
        await rig.receive(#"{"type":"streamEnd","payload":{"streamID":"s1","reason":"clientUnsubscribed"}}"#)
        let epochNow = isSameEpoch ? epoch : "old"
        await rig.receive(
            #"{"type":"streamResume","payload":{"streamID":"s9","callID":"7","actorID":"list","targetIdentifier":"observeState","#
                + #""epoch":"\#(epochNow)","lastSequence":\#(seen)}}"#)
        // Its former name is unknown at this server.
        #expect(await rig.waitFor(#""type":"streamStart","payload":{"streamID":"s2","callID":"7""#))
        if isSameEpoch {
            _ = await rig.call(3, "calculator", "nothing()", "")
            #expect(await rig.on { $0.streams.values.first?.sent ?? 0 } == seen, "the client has that version")
        } else {
            #expect(await rig.waitFor("milk"))
        }
    }

    @Test(
        "a stream that cannot be resumed is answered as a call, or ends as a stream when the request has no number",
        arguments: [
            ("nobody", "observeState", "no actor 'nobody' is exposed"),
            ("list", "observeNothing", "actor 'list' has no stream 'observeNothing'"),
            ("list", "add(title:)", "actor 'list' has no stream 'add(title:)'"),
        ])
    func notResumed(actor: String, target: String, message: String) async {
        let rig = await Rig()
        for (callID, answer) in [
            (#""callID":"7","#, #""type":"response","payload":{"callID":"7""#),
            ("", #""type":"streamError","payload":{"streamID":"s9""#),
        ] {
            let texts = await rig.receive(
                #"{"type":"streamResume","payload":{"streamID":"s9",\#(callID)"actorID":"\#(actor)","#
                    + #""targetIdentifier":"\#(target)","epoch":"e","lastSequence":3}}"#)
            #expect(texts.count == 1)
            #expect(texts.first?.contains(answer) == true)
            #expect(texts.first?.contains(message) == true)
            #expect(await rig.on { $0.streamUsage.streams } == 0)
        }
    }

    // MARK: Starting streams

    private func resuming(_ name: String, _ actor: String, filter: String = "") -> String {
        #"{"type":"streamResume","payload":{"streamID":"\#(name)","actorID":"\#(actor)","targetIdentifier":"observeState","#
            + #"\#(filter)"epoch":"e","lastSequence":0}}"#
    }

    private func rigWithActorsElsewhere() async -> Rig {
        let rig = await Rig()
        for name in ["one", "other"] {
            await rig.server.expose(PoolActor(actorSystem: rig.server.actorSystem), as: name)
        }
        return rig
    }

    /// Delivers several messages in one turn, with work after them: the actors have not run yet.
    private func inOneTurn(
        _ rig: Rig, _ messages: [String], then body: @escaping @Sendable (ServerConnection) -> Void = { _ in }
    ) async {
        await rig.on { connection in
            rig.link.texts = []
            for message in messages { Array(message.utf8).withUnsafeBytes { connection.receive($0) } }
            body(connection)
        }
        #expect(await eventually { await rig.on { $0.streams.starting.isEmpty } })
    }

    @Test("a stream that its client has named can be ended while it starts")
    func endedWhileBeginning() async {
        let rig = await rigWithActorsElsewhere()
        await inOneTurn(
            rig,
            [
                resuming("mine", "one"),
                #"{"type":"streamEnd","payload":{"streamID":"mine","reason":"clientUnsubscribed"}}"#,
            ])
        #expect(await eventually { await rig.on { $0.streamUsage.streams } == 0 })
        #expect(await rig.on { $0.streams.count } == 0)
        #expect(await rig.texts.filter { $0.contains(#""type":"streamEnd","payload":{"streamID":"mine""#) }.count == 1)
    }

    @Test("when a client gives two streams one name, only the second starts")
    func sameName() async {
        let rig = await rigWithActorsElsewhere()
        await inOneTurn(rig, [resuming("x", "one"), resuming("x", "other")])
        #expect(await rig.waitFor(#""actorID":"other""#))
        let begun = await rig.texts.filter { $0.contains(#""type":"streamStart""#) }
        #expect(begun.count == 1 && begun.first?.contains(#""actorID":"other""#) == true)
        // The first one is released when its actor has answered.
        #expect(await eventually { await rig.on { [$0.streams.count, Int($0.streamUsage.streams)] } == [1, 1] })
    }

    @Test("the call for a stream is answered when its client takes the name that the server had chosen")
    func reusedName() async {
        let rig = await rigWithActorsElsewhere()
        let call = #"{"type":"invocation","payload":{"callID":"1","actorID":"one","targetIdentifier":"observeState"}}"#
        await inOneTurn(rig, [call, resuming("s1", "other")])
        #expect(await rig.waitFor(#""type":"streamStart","payload":{"streamID":"s1""#))
        #expect(await rig.waitFor(#""type":"response","payload":{"callID":"1","error":{"code":"cancelled""#))
        #expect(await rig.on { [$0.streams.count, Int($0.streamUsage.streams)] } == [1, 1])
    }

    @Test("a starting stream is not sent once its caller lost the authorization, and its filter is released")
    func refusedWhileBeginning() async {
        let rig = await rigWithActorsElsewhere()
        await inOneTurn(rig, [resuming("all", "one")])
        #expect(await eventually { await rig.on { $0.streams.count } == 1 })
        await inOneTurn(rig, [resuming("x", "one", filter: #""filter":{"distinct":true},"#)]) { connection in
            connection.endStreams(of: ActorName("one"), TrebuchetError(.unauthorized, "you are out"))
        }
        #expect(await rig.waitFor("you are out"))
        #expect(await rig.texts.contains { $0.contains(#""streamID":"x""#) && $0.contains("streamStart") } == false)
        #expect(await eventually { await rig.on { [$0.streams.count, Int($0.streamUsage.filtered)] } == [1, 0] })
        #expect(await eventually { await rig.on { $0.streams.values.first?.broadcaster.producer.filterCount } == 0 })
    }

    @Test("a stream is released at the scopes that reserved it, also after another sign-in")
    func released() async throws {
        let rig = await Rig()
        let caller = CallerConnection(principal: Principal(id: "ann"), remoteAddress: nil)
        let shard = rig.server.shards[0]
        let connection = await shard.reactor.perform {
            ServerConnection(
                rig.link, name: shard.newConnectionName(), shard: shard, caller: Caller(connection: caller))
        }
        let shares = rig.server.context.quotas
        for (number, principal) in [Principal(id: "ann"), Principal(id: "bob"), nil].enumerated() {
            caller.principal = principal
            let message =
                #"{"type":"invocation","payload":{"callID":"\#(number)","actorID":"list","targetIdentifier":"observeState"}}"#
            await shard.reactor.perform {
                Array(message.utf8).withUnsafeBytes { connection.receive($0) }
            }
            #expect(await eventually { await shard.reactor.perform { connection.streams.count } == number + 1 })
        }
        #expect(shares.count(.streams) == 3)
        await shard.reactor.perform { connection.linkDidClose() }
        #expect(await eventually { shares.isEmpty })
    }
}
