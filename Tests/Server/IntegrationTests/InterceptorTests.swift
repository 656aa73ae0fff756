import Networking
import Synchronization
import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// Interceptors of a server, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct InterceptorTests {
    /// A server with an actor on each of two reactors, and a client.
    private struct Scene {
        let server: TrebuchetServer
        let address: SocketAddress
        let client: TrebuchetClient
        let journal: Journal
        let one: InterceptedActor
        let two: InterceptedActor

        init(
            _ interceptors: [any ServerInterceptor], journal: Journal = Journal(),
            limits: ServerLimits = ServerLimits(),
            access: AccessPolicy = .open, options: TrebuchetClient.Options = .init()
        ) async throws {
            var access = access
            access.interceptors = interceptors
            self.journal = journal
            server = TrebuchetServer(
                transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, limits: limits, access: access)
            for name in ["one", "two"] {
                await server.expose(InterceptedActor(journal: journal, actorSystem: server.actorSystem), as: name)
            }
            address = try await server.start()
            client = TrebuchetClient(
                transport: .webSocket(host: address.host, port: address.port), options: options)
            try await client.connect()
            one = try client.resolve(InterceptedActor.self, id: "one")
            two = try client.resolve(InterceptedActor.self, id: "two")
        }

        /// The number of calls so far that have not run in place.
        var callsBegun: UInt64 {
            get async {
                var count: UInt64 = 0
                for shard in server.shards {
                    count += await shard.reactor.perform { shard.counts.sum }[.callsBegun]
                }
                return count
            }
        }

        var callsUnderWay: Int { get async { await server.counters().callsUnderWay } }

        func end() async {
            await client.close()
            await server.shutdown(drain: .zero)
        }
    }

    private static func code(_ body: () async throws -> some Sendable) async -> TrebuchetError.Code? {
        do {
            _ = try await body()
            return nil
        } catch {
            return (error as? TrebuchetError)?.code
        }
    }

    // MARK: Calls

    @Test("interceptors run in their order around authorization and the method, on any reactor and in any path")
    func order() async throws {
        let journal = Journal()
        var access = AccessPolicy.open
        access.authorize = { _, _, _ in
            journal.record("authorize")
            return true
        }
        let scene = try await Scene(
            [
                Admission { _ in journal.record("first") }, RecordingInterceptor(name: "outer", journal: journal),
                Admission { _ in journal.record("middle") }, RecordingInterceptor(name: "inner", journal: journal),
            ], journal: journal, access: access)
        var expected: [String] = []
        for actor in [scene.one, scene.two] {
            _ = try await actor.add(1)
            _ = try await actor.addLater(1)
            _ = try await actor.addOnce(1)
        }
        for _ in 0..<2 {
            for target in ["add(_:)", "addLater(_:)", "addOnce(_:)"] {
                expected += [
                    "first", "outer: \(target)", "middle", "inner: \(target)", "authorize", "add 1", "inner: returned",
                    "outer: returned",
                ]
            }
        }
        #expect(journal.entries == expected)
        await scene.end()
    }

    @Test(
        "an interceptor that throws refuses the call with its error, and the method does not run",
        arguments: [true, false])
    func refused(isAdmission: Bool) async throws {
        let refuse: @Sendable (ServerRequest) throws -> Void = { request in
            switch request.target {
            case "add(_:)": throw TrebuchetError(.rateLimited, "slower", retryAfter: .milliseconds(7))
            case "addLater(_:)": throw InterceptedActor.Full(limit: 9)
            default: break
            }
        }
        let interceptor: any ServerInterceptor =
            isAdmission
            ? Admission(refuse)
            : Around { request, next in
                try refuse(request)
                return try await next(request)
            }
        let scene = try await Scene([interceptor])
        scene.client.register(errors: InterceptedActor.Full.self)
        for actor in [scene.one, scene.two] {
            let error = await #expect(throws: TrebuchetError.self) { try await actor.add(1) }
            #expect(error?.code == .rateLimited && error?.message == "slower" && error?.retryAfter == .milliseconds(7))
            await #expect(throws: InterceptedActor.Full(limit: 9)) { try await actor.addLater(1) }
            await #expect(throws: InterceptedActor.Full(limit: 3)) { try await actor.fail() }
            #expect(try await actor.addOnce(1) == 1)
        }
        #expect(scene.journal.entries == ["add 1", "add 1"])
        await scene.end()
    }

    @Test("interceptors receive the errors of methods, of authorization and of malformed calls")
    func errors() async throws {
        let journal = Journal()
        var access = AccessPolicy.open
        access.authorize = { _, _, target in target != "addLater(_:)" }
        let scene = try await Scene(
            [RecordingInterceptor(name: "audit", journal: journal)], journal: journal, access: access)
        #expect(await Self.code { try await scene.one.addLater(1) } == .unauthenticated)
        await #expect(throws: InterceptedActor.Full.self) { try await scene.two.fail() }
        let peer = try await RawPeer.connect(scene.address)
        peer.invoke("1", "one", "add(_:)", #"["x"]"#)
        #expect(try await peer.next()?.payload.error?.code == "invalidArguments")
        peer.invoke("2", "one", "add(_:)", "[]")
        #expect(try await peer.next()?.payload.error?.code == "invalidArguments")
        #expect(
            journal.entries == [
                "audit: addLater(_:)", "audit: unauthenticated", "audit: fail()", "audit: Full(limit: 3)",
                "audit: add(_:)", "audit: invalidArguments", "audit: add(_:)", "audit: invalidArguments",
            ])
        #expect(await scene.callsUnderWay == 0)
        peer.close()
        await scene.end()
    }

    @Test("without interceptors, and with those that admit only, calls run in place")
    func inPlace() async throws {
        let admitted = Mutex(0)
        let admission = Admission { _ in admitted.withLock { $0 += 1 } }
        for (interceptors, isInPlace) in [
            ([], true), ([admission], true), ([RecordingInterceptor(name: "", journal: Journal())], false),
        ]
            as [([any ServerInterceptor], Bool)]
        {
            let scene = try await Scene(interceptors)
            let peer = try await RawPeer.connect(scene.address)
            // One of the actors lives on the reactor of the connection.
            var begun: [UInt64] = []
            for name in ["one", "two"] {
                let before = await scene.callsBegun
                for number in 0..<10 {
                    peer.invoke("\(number)", name, "add(_:)", "[1]")
                    _ = try await peer.next()
                }
                begun.append(await scene.callsBegun - before)
            }
            #expect(begun.contains(0) == isInPlace, "\(begun)")
            peer.close()
            await scene.end()
        }
        #expect(admitted.withLock { $0 } == 20)
    }

    @Test("calls keep their order behind interceptors that do not suspend", arguments: ["one", "two"])
    func sequence(name: String) async throws {
        let scene = try await Scene([RecordingInterceptor(name: "", journal: Journal())])
        let peer = try await RawPeer.connect(scene.address)
        await peer.together { for number in 1...200 { peer.invoke("\(number)", name, "add(_:)", "[\(number)]") } }
        for _ in 1...200 { _ = try await peer.next() }
        #expect(scene.journal.entries == (1...200).map { "add \($0)" })
        peer.close()
        await scene.end()
    }

    @Test("a second call of next fails, and the method runs once")
    func twice() async throws {
        let journal = Journal()
        let scene = try await Scene(
            [
                Around { request, next in
                    _ = try await next(request)
                    journal.record("again")
                    return try await next(request)
                }
            ], journal: journal)
        #expect(await Self.code { try await scene.one.add(1) } == .internal)
        #expect(journal.entries == ["add 1", "again"])
        await scene.end()
    }

    @Test("arguments are shown only on request, and never those of redacted methods")
    func arguments() async throws {
        let journal = Journal()
        let scene = try await Scene(
            [
                RecordingInterceptor(name: "a", journal: journal, readsArguments: true)
            ], journal: journal)
        _ = try await scene.one.add(41)
        _ = try await scene.one.addSecretly(42)
        let shown = journal.entries.filter { $0.hasPrefix("a: add") }
        #expect(shown == ["a: add(_:) [41]", "a: addSecretly(_:) redacted"])
        await scene.end()
    }

    @Test("an interceptor sees the caller, the actor, the deadline and the connection")
    func request() async throws {
        let seen = Mutex<[ServerRequest]>([])
        var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(["k": Principal(id: "ada", roles: ["editor"])]))
        access.retainedHeaders = ["User-Agent"]
        var options = TrebuchetClient.Options()
        options.token = { "k" }
        options.headers = ["User-Agent": "app/3", "X-Other": "1"]
        let scene = try await Scene(
            [Admission { request in seen.withLock { $0.append(request) } }], access: access, options: options)
        _ = try await withDeadline(.seconds(25)) { try await scene.two.add(1) }
        let request = try #require(seen.withLock { $0.first })
        #expect(request.kind == .call && request.actor == "two" && request.target == "add(_:)")
        #expect(request.type.hasSuffix("InterceptedActor") && !request.isRepeat && !request.isResumed)
        #expect(request.principal?.id == "ada" && request.principal?.roles == ["editor"] && request.connection != 0)
        #expect(request.timeLimit > .seconds(20) && request.timeLimit <= .seconds(25))
        #expect(request.caller?.connection.headers == ["user-agent": "app/3"])
        #expect(request.metadata.isEmpty && request.arguments == nil && request.trace == nil)
        #expect(try await scene.one.header("user-agent") == "app/3")
        #expect(try await scene.one.header("x-other") == nil)
        await scene.end()
    }

    // MARK: Ends

    @Test("a call that its interceptor does not continue ends at its deadline, and counts until the interceptor ends")
    func deadline() async throws {
        let journal = Journal()
        let scene = try await Scene(
            [
                Around { request, next in
                    journal.record("began")
                    await journal.wait(for: "never")
                    journal.record("cancelled")
                    return try await next(request)
                }
            ], journal: journal)
        #expect(
            await Self.code { try await withDeadline(.milliseconds(50)) { try await scene.one.add(1) } } == .timeout)
        await journal.wait(for: "cancelled")
        #expect(await eventually { await scene.callsUnderWay == 0 })
        #expect(journal.entries == ["began", "cancelled"])
        await scene.end()
    }

    @Test("a deadline during the method ends it for the interceptors too", arguments: ["one", "two"])
    func lateMethod(name: String) async throws {
        let journal = Journal()
        let scene = try await Scene([RecordingInterceptor(name: "a", journal: journal)], journal: journal)
        // Only the server measures this time: a client would also cancel the call.
        let peer = try await RawPeer.connect(scene.address)
        peer.send(
            #"{"type":"invocation","payload":{"callID":"1","actorID":"\#(name)","targetIdentifier":"wait()","#
                + #""arguments":[],"timeoutMilliseconds":50}}"#)
        #expect(try await peer.next()?.payload.error?.code == "timeout")
        await journal.wait(for: "a: timeout")
        peer.close()
        #expect(await eventually { await scene.callsUnderWay == 0 })
        await scene.end()
    }

    @Test(
        "a deadline after the method does not reveal a result that an interceptor withholds", arguments: ["one", "two"])
    func withheld(name: String) async throws {
        let journal = Journal()
        let scene = try await Scene(
            [
                Around { request, next in
                    _ = try await next(request)
                    await journal.wait(for: "never")
                    throw TrebuchetError(.unauthorized, "withheld")
                }
            ], journal: journal)
        let peer = try await RawPeer.connect(scene.address)
        peer.send(
            #"{"type":"invocation","payload":{"callID":"1","actorID":"\#(name)","targetIdentifier":"add(_:)","#
                + #""arguments":[1],"timeoutMilliseconds":1000}}"#)
        await journal.wait(for: "add 1")
        #expect(try await peer.next()?.payload.error?.code == "timeout")
        #expect(await eventually { await scene.callsUnderWay == 0 })
        peer.close()
        await scene.end()
    }

    /// Returns an interceptor that waits for the entry "end" after an error of the call.
    private static func workingOnAfterErrors(_ journal: Journal) -> Around {
        Around { request, next in
            do {
                return try await next(request)
            } catch {
                journal.record("failed")
                // A separate task, which the cancellation of the call does not reach.
                await Task { await journal.wait(for: "end") }.value
                throw error
            }
        }
    }

    @Test("interceptors that work on after a refusal count as a call until they end")
    func workAfterRefusal() async throws {
        let journal = Journal()
        var limits = ServerLimits()
        limits.calls.perConnection = 2
        let scene = try await Scene(
            [Self.workingOnAfterErrors(journal)], journal: journal, limits: limits,
            access: AccessPolicy(authorize: { _, _, _ in false }))
        let peer = try await RawPeer.connect(scene.address)
        for callID in ["1", "2"] { peer.invoke(callID, "one", "add(_:)", "[1]") }
        #expect(await eventually { journal.entries.count { $0 == "failed" } == 2 })
        peer.invoke("3", "one", "add(_:)", "[1]")
        let third = try await peer.next()
        #expect(third?.payload.callID == "3" && third?.payload.error?.code == "rateLimited")
        journal.record("end")
        for _ in 0..<2 { #expect(try await peer.next()?.payload.error?.code == "unauthenticated") }
        #expect(await eventually { await scene.callsUnderWay == 0 })
        peer.close()
        await scene.end()
    }

    @Test("interceptors that work on after their call was cancelled count as a call until they end")
    func workAfterCancellation() async throws {
        let journal = Journal()
        var limits = ServerLimits()
        limits.calls.perConnection = 2
        let scene = try await Scene(
            [Self.workingOnAfterErrors(journal)], journal: journal, limits: limits)
        let peer = try await RawPeer.connect(scene.address)
        for callID in ["1", "2"] { peer.invoke(callID, "one", "wait()") }
        #expect(await eventually { journal.entries.count { $0 == "waits" } == 2 })
        for callID in ["1", "2"] {
            peer.send(#"{"type":"cancel","payload":{"callID":"\#(callID)"}}"#)
            #expect(try await peer.next()?.payload.error?.code == "cancelled")
        }
        #expect(await eventually { journal.entries.count { $0 == "failed" } == 2 })
        peer.invoke("3", "one", "add(_:)", "[1]")
        #expect(try await peer.next()?.payload.error?.code == "rateLimited")
        journal.record("end")
        #expect(
            await eventually {
                peer.invoke("4", "one", "add(_:)", "[1]")
                return (try? await peer.next())??.payload.result == 1
            })
        peer.close()
        await scene.end()
    }

    @Test("interceptors of calls end when the connection closes")
    func closed() async throws {
        let journal = Journal()
        let scene = try await Scene([RecordingInterceptor(name: "a", journal: journal)], journal: journal)
        let peer = try await RawPeer.connect(scene.address)
        peer.invoke("1", "one", "wait()")
        await journal.wait(for: "waits")
        peer.abort()
        await journal.wait(for: "a: CancellationError()")
        #expect(await eventually { await scene.callsUnderWay == 0 })
        await scene.end()
    }

    @Test("a repeat of an idempotent call is intercepted again, and receives the recorded response")
    func repeated() async throws {
        let journal = Journal()
        let scene = try await Scene([RecordingInterceptor(name: "a", journal: journal)], journal: journal)
        let peer = try await RawPeer.connect(scene.address)
        peer.call("1", "one", "addOnce(_:)", "[5]")
        #expect(try await peer.next()?.payload.result == 5)
        let session = peer.session
        peer.abort()
        let other = try await RawPeer.connect(scene.address)
        other.call("1", "one", "addOnce(_:)", "[5]", of: session)
        #expect(try await other.next()?.payload.result == 5)
        #expect(
            journal.entries == [
                "a: addOnce(_:)", "add 5", "a: returned", "a: addOnce(_:) repeated", "a: returned",
            ])
        other.close()
        await scene.end()
    }

    @Test("rates are checked before an interceptor's task, and count each call once")
    func rates() async throws {
        let journal = Journal()
        var limits = ServerLimits()
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 0.001, burst: 3)
        let scene = try await Scene(
            [RecordingInterceptor(name: "a", journal: journal)], journal: journal, limits: limits)
        for _ in 0..<3 { _ = try await scene.one.add(1) }
        #expect(await Self.code { try await scene.one.add(1) } == .rateLimited)
        #expect(journal.entries.count { $0 == "a: add(_:)" } == 3)
        await scene.end()
    }

    @Test("a repeat counts once for the rates, on whatever reactor its first connection is", arguments: [true, false])
    func repeatRates(isOnOtherReactor: Bool) async throws {
        let journal = Journal()
        var limits = ServerLimits()
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 0.001, burst: 1)
        let scene = try await Scene(
            [RecordingInterceptor(name: "a", journal: journal)], journal: journal, limits: limits)
        let first = try await RawPeer.connect(scene.address)
        first.call("1", "one", "addOnce(_:)", "[5]")
        #expect(try await first.next()?.payload.result == 5)
        var next = try await RawPeer.connect(scene.address)
        while (next.reactorIndex != first.reactorIndex) != isOnOtherReactor {
            next.close()
            next = try await RawPeer.connect(scene.address)
        }
        next.call("1", "one", "addOnce(_:)", "[5]", of: first.session)
        #expect(try await next.next()?.payload.result == 5)
        next.close()
        first.close()
        await scene.end()
    }

    // MARK: Streams

    @Test("streams are intercepted when they start and when they are resumed")
    func streams() async throws {
        let journal = Journal()
        let scene = try await Scene(
            [
                Admission { request in journal.record("\(request.kind)") },
                RecordingInterceptor(name: "a", journal: journal),
            ],
            journal: journal)
        let peer = try await RawPeer.connect(scene.address)
        for (callID, name) in [("1", "one"), ("2", "two")] {
            peer.invoke(callID, name, "observeCount")
            #expect(try await peer.next()?.type == "streamStart")
            #expect(await peer.nextText()?.contains(#""streamData""#) == true)
        }
        peer.send(
            #"{"type":"streamResume","payload":{"streamID":"mine","actorID":"one","targetIdentifier":"observeCount","epoch":"e","lastSequence":1}}"#
        )
        let resumed = try await peer.next()
        #expect(resumed?.type == "streamStart" && resumed?.payload.streamID == "mine")
        #expect(
            journal.entries == [
                "stream", "a: observeCount", "stream", "a: observeCount", "stream", "a: observeCount resumed",
            ])
        peer.close()
        await scene.end()
    }

    @Test("a refused stream does not start", arguments: [true, false])
    func refusedStream(isAdmission: Bool) async throws {
        struct Refusing: ServerInterceptor {
            func startStream(_ request: ServerRequest) async throws { throw TrebuchetError(.unauthorized, "closed") }
        }
        let interceptor: any ServerInterceptor =
            isAdmission ? Admission { _ in throw TrebuchetError(.unauthorized, "closed") } : Refusing()
        let scene = try await Scene([interceptor])
        let peer = try await RawPeer.connect(scene.address)
        peer.invoke("1", "one", "observeCount")
        let answer = try await peer.next()
        #expect(answer?.payload.callID == "1" && answer?.payload.error?.code == "unauthorized")
        peer.send(
            #"{"type":"streamResume","payload":{"streamID":"mine","actorID":"two","targetIdentifier":"observeCount","epoch":"e","lastSequence":1}}"#
        )
        let refused = try await peer.next()
        #expect(
            refused?.type == "streamError" && refused?.payload.streamID == "mine"
                && refused?.payload.code == "unauthorized")
        #expect(await eventually { await scene.server.counters().streams == 0 })
        #expect(await scene.callsUnderWay == 0)
        peer.close()
        await scene.end()
    }

    // MARK: Metadata

    private func ids(_ actor: InterceptedActor) async throws -> [String] {
        [try await actor.idNow(), try await actor.idLater(), try await actor.idOnce()]
    }

    @Test("a method reads the metadata of its call, and of no other", arguments: [false, true])
    func metadata(isIntercepted: Bool) async throws {
        let scene = try await Scene(isIntercepted ? [RecordingInterceptor(name: "", journal: Journal())] : [])
        for actor in [scene.one, scene.two] {
            #expect(try await ids(actor) == ["none", "none", "none"])
            let given = try await CallMetadata.with(["request-id": "7", "other": "é\n"]) {
                let outer = try await ids(actor)
                return try await CallMetadata.with(["request-id": "8"]) { outer + (try await ids(actor)) }
            }
            #expect(given == ["7", "7", "7", "8", "8", "8"])
            #expect(try await ids(actor) == ["none", "none", "none"])
        }
        await scene.end()
    }

    @Test("a method reads the metadata that interceptors set")
    func changedMetadata() async throws {
        let scene = try await Scene([
            Around { request, next in
                var request = request
                request.metadata["request-id"] = (request.metadata["request-id"] ?? "x") + "-a"
                return try await next(request)
            },
            Around { request, next in
                var request = request
                request.metadata.fields["request-id", default: ""] += "-b"
                return try await next(request)
            },
        ])
        for actor in [scene.one, scene.two] {
            #expect(try await ids(actor) == ["x-a-b", "x-a-b", "x-a-b"])
            #expect(
                try await CallMetadata.with(["request-id": "7"]) { try await ids(actor) } == [
                    "7-a-b", "7-a-b", "7-a-b",
                ])
        }
        await scene.end()
    }

    @Test("a call with invalid metadata is refused, and the connection continues")
    func invalidMetadata() async throws {
        let scene = try await Scene([])
        let peer = try await RawPeer.connect(scene.address)
        let many = (0..<17).map { #""f\#($0)":"""# }.joined(separator: ",")
        for (number, metadata) in ["{\(many)}", #"{"a":1}"#, #"{"A":"1"}"#, #"{"a":"1","a":"2"}"#, "[]"].enumerated() {
            peer.send(
                #"{"type":"invocation","payload":{"callID":"\#(number)","actorID":"one","targetIdentifier":"add(_:)","arguments":[1],"metadata":\#(metadata)}}"#
            )
            let answer = try await peer.next()
            #expect(answer?.payload.callID == "\(number)" && answer?.payload.error?.code == "invalidArguments")
        }
        peer.invoke("9", "one", "add(_:)", "[1]")
        #expect(try await peer.next()?.payload.result == 1)
        #expect(scene.journal.entries == ["add 1"])
        let error = await #expect(throws: TrebuchetError.self) {
            try await CallMetadata.with(["Not-A-Name": "1"]) { try await scene.one.add(1) }
        }
        #expect(error?.code == .invalidArguments)
        let large = String(repeating: "x", count: 5_000)
        #expect(
            await Self.code { try await CallMetadata.with(["a": large]) { try await scene.one.add(1) } }
                == .invalidArguments)
        peer.close()
        await scene.end()
    }

    // MARK: Clients

    /// Counts, repeats and refuses calls, and sets metadata.
    private struct Outgoing: ClientInterceptor {
        let name: String
        let journal: Journal

        func call(_ request: ClientRequest, next: ClientInterceptor.Next) async throws -> InterceptedResult {
            journal.record("\(name): \(request.actor) \(request.target) \(request.byteCount) \(request.isIdempotent)")
            if request.target == "addSecretly(_:)" { throw TrebuchetError(.unauthorized, "not from here") }
            var request = request
            request.metadata["request-id"] = (request.metadata["request-id"] ?? "") + name
            do {
                return try await next(request)
            } catch let error as TrebuchetError where error.code == .rateLimited && name == "a" {
                journal.record("again")
                return try await next(request)
            }
        }

        func startStream(_ request: inout ClientRequest) throws(TrebuchetError) {
            journal.record("\(name): \(request.target)\(request.isResumed ? " resumed" : "")")
            if request.actor == "two" { throw TrebuchetError(.unauthorized, "not from here") }
            request.metadata["token"] = name
        }
    }

    @Test("interceptors of a client set metadata, repeat and refuse calls and streams")
    func client() async throws {
        let journal = Journal()
        var options = TrebuchetClient.Options()
        options.interceptors = [Outgoing(name: "a", journal: journal), Outgoing(name: "b", journal: journal)]
        let isRefusing = Mutex(true)
        let tokens = Mutex<[String?]>([])
        let scene = try await Scene(
            [
                Admission { request in
                    if request.kind == .stream { tokens.withLock { $0.append(request.metadata["token"]) } }
                    let refuses = isRefusing.withLock { isRefusing in
                        defer { isRefusing = request.target == "idOnce()" ? false : isRefusing }
                        return isRefusing && request.target == "idOnce()"
                    }
                    if refuses { throw TrebuchetError(.rateLimited, "slower") }
                }
            ], options: options)
        #expect(try await scene.one.idNow() == "ab")
        #expect(try await CallMetadata.with(["request-id": "x"]) { try await scene.one.idLater() } == "xab")
        #expect(try await scene.one.idOnce() == "ab")
        #expect(await Self.code { try await scene.one.addSecretly(100) } == .unauthorized)
        await #expect(throws: InterceptedActor.Full(limit: 3)) { try await scene.one.fail() }
        for await count in await scene.one.observeCount() {
            #expect(count == 0)
            break
        }
        let stream = await scene.two.observeCount()
        for await _ in stream { Issue.record("the stream was refused") }
        if case .failed(let error)? = stream.outcome {
            #expect(error.code == .unauthorized)
        } else {
            Issue.record("\(String(describing: stream.outcome))")
        }
        #expect(tokens.withLock { $0 } == ["b"])
        #expect(
            journal.entries == [
                "a: one idNow() 0 false", "b: one idNow() 0 false", "a: one idLater() 0 false",
                "b: one idLater() 0 false",
                "a: one idOnce() 0 true", "b: one idOnce() 0 true", "again", "b: one idOnce() 0 true",
                "a: one addSecretly(_:) 3 false", "a: one fail() 0 false", "b: one fail() 0 false",
                "a: observeCount", "b: observeCount", "a: observeCount",
            ])
        await scene.end()
    }
}
