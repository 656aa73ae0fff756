import QStream
import Testing

/// Operators with a clock, tick by tick; a tick is a second.
@Suite(.timeLimit(.minutes(5))) struct TimedMarbleTests {
    @Test(
        "debounce sends the last value after a quiet interval",
        arguments: [
            ("a-------", "---a----"),
            ("abc-----", "-----c--"),
            ("ab----c----", "----b----c-"),
            ("a--b---", "---a--b"),
        ])
    func debounce(input: String, output: String) {
        #expect(Stage().play(input) { r, clock in await r[0].debounce(for: .seconds(3), clock: clock) } == output)
    }

    @Test("debounce loses nothing while its subscriber is busy")
    func busyDebounce() {
        // b arrives while a is being processed (from 2 to 7) and is processed after it.
        let output = Stage().play("a--b---------", taking: 5) { r, clock in
            await r[0].debounce(for: .seconds(2), clock: clock)
        }
        #expect(output == "--a----b-----")
    }

    @Test(
        "throttle sends the first value at once and then the newest of each interval",
        arguments: [
            ("a------", "a------"),
            ("ab-----", "a--b---"),
            ("abc-d----", "a--c--d--"),
            ("a-----b--", "a-----b--"),
            ("abcdefgh---", "a--c--f--h-"),
        ])
    func throttle(input: String, output: String) {
        #expect(Stage().play(input) { r, clock in await r[0].throttle(for: .seconds(3), clock: clock) } == output)
    }

    @Test("throttle can delay the first value, too")
    func throttleLater() {
        let output = Stage().play("ab-------") { r, clock in
            await r[0].throttle(for: .seconds(3), emitImmediately: false, clock: clock)
        }
        #expect(output == "---b-----")
    }

    @Test("throttle loses nothing while its subscriber is busy")
    func busyThrottle() {
        let output = Stage().play("ab-c------------", taking: 5) { r, clock in
            await r[0].throttle(for: .seconds(2), clock: clock)
        }
        // a until 5, then c (newer than b), which arrived while a was being processed.
        #expect(output.filter { $0 != "-" }.last == "c")
        let queued = Stage().play("a-b-----c---------------", taking: 5) { r, clock in
            await r[0].throttle(for: .seconds(2), clock: clock)
        }
        #expect(queued.filter { $0 != "-" } == "abc")
    }

    @Test("waitForPendingEmit returns when the last value has been delivered")
    func pendingEmit() {
        let stage = Stage()
        let relay = Relay<Int>()
        let log = Log<Int>()
        stage.perform {
            let throttle = await relay.throttle(for: .seconds(3), clock: stage.clock)
            stage.keep(await throttle.tap { log.record($0) })
            await relay.send(1)
            await throttle.waitForPendingEmit()
            log.record(-1)
            await relay.send(2)
            await throttle.waitForPendingEmit()
            log.record(-2)
        }
        #expect(log.values == [1, -1])
        stage.advance(ticks: 3)
        #expect(log.values == [1, -1, 2, -2])
    }

    @Test(
        "hold passes true at once and false only after an interval without true",
        arguments: [
            ("T-F-T--F------", "T---T------F--"),
            ("F-F-T-FF-----", "F-F-T-----F--"),
            ("T-F------F-", "T-----F--F-"),
        ])
    func hold(input: String, output: String) {
        let result = Stage().play(input) { r, clock in
            await r[0].map { $0 == "T" }.hold(for: .seconds(4), clock: clock).map { $0 ? "T" : "F" }
        }
        #expect(result == output)
    }

    @Test("a true that arrives before a waiting false wins")
    func holdRace() {
        // The subscriber of the first true is busy until 5; the false is due at 4 and waits behind the second true.
        let output = Stage().play("TF-T------", taking: 5) { r, clock in
            await r[0].map { $0 == "T" }.hold(for: .seconds(3), clock: clock).map { $0 ? "T" : "F" }
        }
        #expect(!output.contains("F"))
    }

    @Test("pulse turns a value into nil after its length")
    func pulse() {
        let output = Stage().play("a-----b-c------") { r, clock in
            await r[0].pulse(ofLength: .seconds(4), clock: clock).map { $0 ?? "n" }
        }
        // Before the first value there is nil, which the subscriber sees first.
        #expect(output == "(na)---n-b-c---n--")
    }

    @Test("pulseOptional does not nest optionals")
    func pulseOptional() {
        let output = Stage().play("a--x--") { r, clock in
            await r[0].map { $0 == "x" ? nil : $0 }.pulseOptional(ofLength: .seconds(4), clock: clock)
                .map { (value: String?) in value ?? "n" }
        }
        #expect(output == "(na)--n--")
    }

    @Test("a timer ticks at multiples of its interval")
    func timer() {
        let stage = Stage()
        let log = Log<Duration>()
        stage.perform {
            let timer = await Streams.Timer(interval: .seconds(3), clock: stage.clock)
            stage.keep(await timer.subscribe { log.record(stage.clock.now.offset) })
        }
        stage.advance(ticks: 10)
        #expect(log.values == [.seconds(3), .seconds(6), .seconds(9)])
        stage.release()
        stage.advance(ticks: 10)
        #expect(log.values.count == 3)
        #expect(stage.clock.sleeperCount == 0)
    }

    @Test("a timer without repetition ticks once")
    func timerOnce() {
        let stage = Stage()
        let log = Log<Duration>()
        stage.perform {
            let timer = await Streams.Timer(interval: .seconds(3), repeat: false, clock: stage.clock)
            stage.keep(await timer.subscribe { log.record(stage.clock.now.offset) })
        }
        stage.advance(ticks: 10)
        #expect(log.values == [.seconds(3)])
    }

    @Test("a slow subscriber makes a timer skip, not burst")
    func slowTimer() {
        let stage = Stage()
        let log = Log<Duration>()
        stage.perform {
            let timer = await Streams.Timer(interval: .seconds(2), clock: stage.clock)
            stage.keep(
                await timer.subscribe {
                    log.record(stage.clock.now.offset)
                    // Only the first takes long: from 2 to 9.
                    guard log.values.count == 1 else { return }
                    try? await stage.clock.sleep(for: .seconds(7))
                })
        }
        stage.advance(ticks: 14)
        #expect(log.values == [.seconds(2), .seconds(10), .seconds(12), .seconds(14)])
    }

    @Test("mapToFuture gives nil, then the result; a newer value cancels the work")
    func mapToFuture() {
        let output = Stage().play("a---b-c-----") { r, clock in
            await r[0].mapToFuture { value -> String? in
                try? await clock.sleep(for: .seconds(3))
                return Task.isCancelled ? nil : value.uppercased()
            }
            .map { $0 ?? "n" }
        }
        #expect(output == "n--An-n--C--")
    }

    @Test("the pending value of a released timed chain does not arrive, and no task stays behind")
    func released() {
        let stage = Stage()
        let relay = Relay<Bool>()
        let log = Log<Bool>()
        stage.perform {
            stage.keep(await relay.debounce(for: .seconds(3), clock: stage.clock).tap { log.record($0) })
            stage.keep(await relay.throttle(for: .seconds(3), clock: stage.clock).subscribe { _ in })
            stage.keep(await relay.hold(for: .seconds(3), clock: stage.clock).subscribe { _ in })
            stage.keep(await relay.pulse(ofLength: .seconds(3), clock: stage.clock).subscribe { _ in })
            await relay.send(true)
            await relay.send(false)
        }
        #expect(stage.clock.sleeperCount == 4)
        stage.release()
        #expect(stage.clock.sleeperCount == 0)
        stage.advance(ticks: 10)
        #expect(log.values.isEmpty)
    }
}
