import QStream
import Relays
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct BridgeTests {
    @Test("a sequence's elements become the values of a stream, one after another")
    func sequence() async {
        let (elements, continuation) = AsyncStream.makeStream(of: Int.self)
        let stream = elements.stream()
        let log = Log<Int>()
        let subscription = await stream.map { $0 * 2 }.tap { log.record($0) }
        #expect(await stream.currentValue() == nil)
        for number in 1...3 { continuation.yield(number) }
        continuation.finish()
        #expect(await stream.waitFor { $0 == 3 } == 3)
        #expect(log.values == [2, 4, 6])
        #expect(await stream.currentValue() == 3)
        withExtendedLifetime(subscription) {}
    }

    @Test("a failed sequence reports its error, and the last value stays")
    func failingSequence() async {
        struct Broken: Error {}
        let (elements, continuation) = AsyncThrowingStream.makeStream(of: Int.self)
        let log = Log<String>()
        let stream = elements.stream { log.record("\(type(of: $0))") }
        continuation.yield(1)
        continuation.finish(throwing: Broken())
        #expect(await eventually { log.values == ["Broken"] }, "the failure is reported")
        #expect(await stream.currentValue() == 1)
    }

    @Test("a state relay is the head of a chain, with its initial value and none twice")
    func stateRelay() async {
        let relay = StateRelay(1)
        let log = Log<Int>()
        let stream = AsyncSequenceStream(relay)
        let subscription = await stream.tap { log.record($0) }
        #expect(log.values == [1])
        relay.update(2)
        _ = await stream.waitFor { $0 == 2 }
        #expect(log.values == [1, 2])
        #expect(await relay.stream.stream().get() == 2)
        withExtendedLifetime(subscription) {}
    }

    @Test("a chain feeds a state relay")
    func relay() async throws {
        let subject = Subject(value: 1)
        let relay = try await subject.map { "\($0)" }.relay()
        #expect(relay.currentValue == "1")
        await subject.set(2)
        #expect(relay.currentValue == "2")
        let impulses = Relay<Int>()
        let counted = await impulses.relay(initialValue: 0)
        await impulses.send(5)
        #expect(counted.currentValue == 5)
        let silent = Task { try await impulses.relay() }
        silent.cancel()
        await #expect(throws: CancellationError.self) { try await silent.value }
    }

    @Test("asyncStream gives later values, tapAsyncStream the current value first, within its bound")
    func asyncStreams() async {
        let subject = Subject(value: 0)
        let later = await subject.asyncStream()
        let tapped = await subject.tapAsyncStream()
        let newest = await subject.tapAsyncStream(bufferingPolicy: .bufferingNewest(1))
        for number in 1...3 { await subject.set(number) }
        func first(_ count: Int, of stream: AsyncStream<Int>) async -> [Int] {
            var values: [Int] = []
            for await value in stream {
                values.append(value)
                if values.count == count { break }
            }
            return values
        }
        #expect(await first(3, of: later) == [1, 2, 3])
        #expect(await first(4, of: tapped) == [0, 1, 2, 3])
        #expect(await first(1, of: newest) == [3])
    }

    @Test("a pipe suspends the sender until its value is received")
    func pipe() async {
        let relay = Relay<Int>()
        let pipe = await relay.asyncPipe()
        let log = Log<String>()
        let sender = Task {
            for number in 1...2 {
                await relay.send(number)
                log.record("sent \(number)")
            }
        }
        #expect(await pipe.pull() == 1)
        #expect(await eventually { log.values == ["sent 1"] }, "the first value was delivered")
        #expect(try! await pipe.pullValue() == 2)
        await sender.value
        #expect(log.values == ["sent 1", "sent 2"])
        let reader = Task { await pipe.pull() }
        reader.cancel()
        #expect(await reader.value == nil)
        let pusher = Task { await pipe.push(3) }
        pusher.cancel()
        #expect(await pusher.value == false)
    }

    @Test("get gives the current value or the next; getNext the next; both with an optional time limit")
    func get() async throws {
        let stage = Stage()
        let subject = Subject(value: 1)
        #expect(await subject.get() == 1)
        let relay = Relay<Int>()
        let log = Log<String>()
        stage.perform { log.record("get \(await relay.get() ?? -1)") }
        stage.perform { log.record("next \(await relay.getNext() ?? -1)") }
        stage.perform { log.record("even \((try? await relay.getCancelable { $0 % 2 == 0 ? "\($0)" : nil }) ?? "-")") }
        stage.perform { await relay.send(7) }
        stage.perform { await relay.send(8) }
        #expect(Set(log.values) == ["get 7", "next 7", "even 8"])

        stage.perform {
            do { _ = try await relay.get(timeout: .seconds(5), clock: stage.clock) } catch {
                log.record("\(type(of: error))")
            }
        }
        stage.advance(ticks: 4)
        #expect(log.values.last != "TimeoutError")
        stage.advance(ticks: 1)
        #expect(log.values.last == "TimeoutError")
        #expect(try await subject.get(timeout: .seconds(5)) == 1)
        #expect(try await subject.getFuture().value == 1)
        #expect(try await subject.getFuture { $0 == 1 ? "one" : nil }.value == "one")
    }
}
