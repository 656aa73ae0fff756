import Bytes
import Platform
import TestSupport
import Testing
import Transports
import Trebuchet
import TrebuchetTesting

/// Streams over HTTP as Server-Sent Events, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct HTTPStreamTests {
    private static var limits: ServerLimits {
        var limits = ServerLimits()
        limits.streams.resumeRetention = .seconds(3_600)
        return limits
    }

    private static func withServer(
        _ access: AccessPolicy = HTTPCallTests.accepting(), limits: ServerLimits = limits, clock: TestTime? = nil,
        _ body: (TestServer) async throws -> Void
    ) async throws {
        try await HTTPCallTests.withServer(access, limits: limits, clock: clock) { test in
            try await body(test)
            #expect(await eventually { test.server.context.memory.usedBytes == 0 })
        }
    }

    private static func call(_ test: TestServer, _ target: String, _ body: String) async throws {
        let reply = try await PageClient(test.address).post("/call/\(target)", body, HTTPCallTests.json)
        #expect(reply.status == 200 || reply.status == 204, "\(reply.text)")
    }

    @Test("a state is sent at once and after each change, with growing ids", arguments: ["desk", "other", "desks/7"])
    func state(actor: String) async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            let events = try EventClient("/observe/\(actor)/count", of: client)
            let head = try await client.head()
            #expect(head.status == 200 && head.fields["content-type"] == "text/event-stream")
            #expect(head.fields["transfer-encoding"] == "chunked" && head.fields["content-length"] == nil)
            #expect(head.fields["cache-control"] == "no-store")
            var ids: [String] = []
            for value in 0...3 {
                if value > 0 { try await Self.call(test, "\(actor)/add(_:)", "[1]") }
                let event = try await events.next()
                #expect(event?.data == "\(value)" && event?.name == nil)
                ids.append(try #require(event?.id))
            }
            let numbers = ids.compactMap { Int($0.split(separator: ".").last ?? "") }
            #expect(numbers == numbers.sorted() && Set(numbers).count == 4)
            #expect(Set(ids.map { $0.prefix { $0 != "." } }).count == 1)
            #expect(
                try await PageClient(test.address).post("/call/\(actor)/add(_:)", "[0]", HTTPCallTests.json).text == "3"
            )
        }
    }

    @Test("all lines of a value and of several streams arrive")
    func values() async throws {
        try await Self.withServer { test in
            try await Self.call(test, "desk/write(_:_:)", "[1,100000]")
            for _ in 0..<2 {
                let events = try await EventClient.start("/observe/desk/note", of: PageClient(test.address))
                let data = try #require(try await events.data())
                #expect(data.hasPrefix("\"1\\n") && data.utf8.count == 100_005)
            }
        }
    }

    @Test("curl reads a stream")
    func curl() async throws {
        try await Self.withServer { test in
            // It ends with the actor.
            let path = "http://127.0.0.1:\(test.address.port)/observe/desk/count"
            let process = try ChildProcess("/usr/bin/curl", ["-sSN", "-m", "60", path], error: .merged)
            #expect(await eventually { await test.server.counters().streams == 1 })
            await test.server.unexpose("desk")
            let output = await process.finish().output
            #expect(output.hasPrefix("id: ") && output.contains("\ndata: 0\n\nevent: end\ndata: "), "\(output)")
        }
    }

    @Test("a state resumes after the id that the client has, without a repetition")
    func resume() async throws {
        try await Self.withServer { test in
            var events = try await EventClient.start("/observe/desk/count", of: PageClient(test.address))
            let first = try #require(try await events.next())
            events.client.disconnect()
            let resumed = ["Last-Event-ID": try #require(first.id)]
            events = try await EventClient.start("/observe/desk/count", of: PageClient(test.address), resumed)
            try await Self.call(test, "desk/add(_:)", "[1]")
            let second = try #require(try await events.next())
            #expect(second.data == "1" && second.id != first.id)
            events.client.disconnect()
            for _ in 0..<3 { try await Self.call(test, "desk/add(_:)", "[1]") }
            events = try await EventClient.start(
                "/observe/desk/count", of: PageClient(test.address), ["Last-Event-ID": try #require(second.id)])
            #expect(try await events.data() == "4")
            // An id of another incarnation: the state starts again.
            events = try await EventClient.start(
                "/observe/desk/count", of: PageClient(test.address), ["Last-Event-ID": "other.99"])
            #expect(try await events.data() == "4")
        }
    }

    @Test("events resume after the id that the client has, also before the first one; missed ones are an error")
    func events() async throws {
        try await Self.withServer { test in
            var events = try await EventClient.start("/observe/desk/rings", of: PageClient(test.address))
            let start = try #require(try await events.next())
            #expect(start.id != nil && start.data == nil)
            for number in [5, 6] {
                try await Self.call(test, "desk/ring(_:)", "[\(number)]")
                #expect(try await events.data() == "\(number)")
            }
            events.client.disconnect()
            try await Self.call(test, "desk/ring(_:)", "[7]")
            events = try await EventClient.start(
                "/observe/desk/rings", of: PageClient(test.address), ["Last-Event-ID": try #require(start.id)])
            for number in 5...7 { #expect(try await events.data() == "\(number)") }
            let missed = try await PageClient(test.address).get("/observe/desk/rings", ["Last-Event-ID": "other.1"])
            #expect(missed.status == 500 && missed.text.contains("\"overflow\""), "\(missed.text)")
        }
    }

    @Test(
        "a request that observes no stream is refused",
        arguments: [
            ("HEAD", "desk/count", [:], 405), ("POST", "desk/count", [:], 405), ("GET", "desk", [:], 404),
            ("GET", "desk/", [:], 404), ("GET", "/count", [:], 404), ("GET", "desk/reset()", [:], 404),
            ("GET", "desk/add(_:)", [:], 404), ("GET", "desk/nothing", [:], 404), ("GET", "nobody/count", [:], 404),
            ("GET", "desk/%zz", [:], 400), ("GET", "desk/count", ["Last-Event-ID": "7"], 400),
            ("GET", "desk/count", ["Last-Event-ID": "a.x"], 400), ("GET", "desk/count", ["Last-Event-ID": ".1"], 400),
            ("GET", "desk/count", ["Content-Length": "1"], 413),
        ] as [(String, String, [String: String], Int)])
    func refused(method: String, target: String, headers: [String: String], status: Int) async throws {
        try await Self.withServer { test in
            let client = try PageClient(test.address)
            let reply = try await client.get("/observe/\(target)", headers, method: method)
            #expect(reply.status == status, "\(reply.text)")
            #expect(reply.fields["content-type"] == "application/problem+json")
            if status == 405 { #expect(reply.fields["allow"] == "GET") }
            #expect(await test.server.counters().streams == 0)
        }
    }

    @Test("without the option of the policy there are no streams, and pages may use the path")
    func off() async throws {
        try await HTTPCallTests.withServer(AccessPolicy()) { (test) async throws in
            #expect(try await PageClient(test.address).get("/observe/desk/count").status == 426)
        }
    }

    @Test("authorization decides, says nothing about actors, and ends streams when it changes")
    func access() async throws {
        let access = HTTPCallTests.accepting {
            $0.authenticate = AccessTests.keys
            $0.authorize = { caller, _, target in
                target == "observeCount" && caller?.principal?.roles.contains("editor") == true
            }
        }
        try await Self.withServer(access) { test in
            func status(_ path: String, _ key: String?) async throws -> (Int, String) {
                let reply = try await PageClient(test.address).get(path, key.map { ["X-API-Key": "\($0)-key"] } ?? [:])
                return (reply.status, reply.text)
            }
            #expect(try await status("/observe/desk/count", nil).0 == 401)
            let known = try await status("/observe/desk/note", "bob")
            let unknown = try await status("/observe/nobody/note", "bob")
            #expect(known.0 == 403 && unknown.0 == 403)
            #expect(known.1 == unknown.1.replacing("nobody", with: "desk"))
            let events = try await EventClient.start(
                "/observe/desk/count", of: PageClient(test.address), ["X-API-Key": "ada-key"])
            #expect(try await events.data() == "0")
            await test.server.replaceAuthorization { _, _, _ in false }
            let end = try #require(try await events.next())
            #expect(end.name == "error" && end.data?.contains("\"code\":\"unauthorized\"") == true, "\(end)")
            #expect(try await events.next() == nil)
            // The connection continues.
            #expect(try await events.client.get("/observe/desk/count", ["X-API-Key": "ada-key"]).status == 403)
        }
    }

    @Test("the stream of an actor that ends has an event 'end'")
    func end() async throws {
        try await Self.withServer { test in
            let events = try await EventClient.start("/observe/other/count", of: PageClient(test.address))
            #expect(try await events.data() == "0")
            await test.server.unexpose("other")
            let end = try #require(try await events.next())
            #expect(end.name == "end" && end.data?.contains("reason") == true, "\(end)")
            #expect(try await events.next() == nil)
            #expect(try await events.client.get("/observe/desk/nothing").status == 404)
        }
    }

    @Test("a stopping server ends the response without an event, so that the client reconnects")
    func shutdown() async throws {
        try await Self.withServer { test in
            let events = try await EventClient.start("/observe/desk/count", of: PageClient(test.address))
            #expect(try await events.data() == "0")
            async let stop: Void = test.server.shutdown(drain: .seconds(60))
            #expect(try await events.next() == nil)
            #expect(await events.client.ends())
            await stop
        }
    }

    @Test("a comment is sent in each ping interval without a value")
    func heartbeats() async throws {
        let clock = TestTime()
        var limits = Self.limits
        limits.connections.pingInterval = .seconds(3_600)
        try await Self.withServer(limits: limits, clock: clock) { test in
            let events = try await EventClient.start("/observe/desk/count", of: PageClient(test.address))
            #expect(try await events.data() == "0")
            // The first interval had a value.
            await clock.advance(by: .seconds(3_600))
            for _ in 0..<3 {
                await clock.advance(by: .seconds(3_600))
                #expect(try await events.next() == EventClient.Event(isComment: true))
            }
            try await Self.call(test, "desk/add(_:)", "[1]")
            #expect(try await events.data() == "1")
        }
    }

    @Test("a slow reader gets the newest value, and holds a bounded amount of memory")
    func slowReader() async throws {
        var limits = Self.limits
        // The client reads as soon as the machine has made the changes.
        limits.pages.transferInterval = .seconds(3_600)
        limits.streams.supersededVersionTimeout = .seconds(3_600)
        try await Self.withServer(limits: limits) { test in
            let client = try PageClient(test.address, receiveBuffer: 4_096)
            let events = try await EventClient.start("/observe/desk/note", of: client)
            #expect(try await events.data() == "\"\"")
            var peak = 0
            for number in 1...200 {
                try await Self.call(test, "desk/write(_:_:)", "[\(number),200000]")
                peak = max(peak, test.server.context.memory.usedBytes)
            }
            #expect(peak < 4 << 20, "\(peak)")
            var count = 0
            while let data = try await events.data() {
                count += 1
                if data.hasPrefix("\"200\\n") { break }
            }
            #expect(count < 150, "\(count)")
            client.disconnect()
        }
    }

    @Test("streams and requests are limited, and counted until their end")
    func limited() async throws {
        for isStreams in [true, false] {
            var limits = Self.limits
            if isStreams { limits.streams.total = 1 } else { limits.http.total = 1 }
            try await Self.withServer(limits: limits) { (test) async throws in
                let events = try await EventClient.start("/observe/desk/count", of: PageClient(test.address))
                #expect(try await events.data() == "0")
                let refused = try await PageClient(test.address).get("/observe/desk/count")
                #expect(refused.status == 429 && refused.fields["retry-after"] != nil, "\(refused.text)")
                events.client.disconnect()
                let isFree = await eventually {
                    (try? await EventClient.start("/observe/desk/count", of: PageClient(test.address))) != nil
                }
                #expect(isFree)
                #expect(
                    try await test.server.prometheusMetrics().contains("trebuchet_http_requests_total{status=\"429\"} ")
                )
            }
        }
    }
}
