import QStream
import Testing

/// Joins of streams: no inconsistent and no lost values.
@Suite(.timeLimit(.minutes(5))) struct JoinTests {
    @Test("a diamond never mixes a new value with an old one")
    func diamond() async {
        let source = Subject(value: 1)
        let log = Log<String>()
        let (tens, hundreds) = (await source.map { $0 * 10 }, await source.map { $0 * 100 })
        let subscription = await tens.combineLatest(hundreds).tap { log.record("\($0)/\($1)") }
        await source.set(2)
        await source.set(3)
        #expect(log.values == ["10/100", "20/200", "30/300"])
        withExtendedLifetime(subscription) {}
    }

    @Test("nested diamonds of unequal depth never mix values")
    func nestedDiamonds() async {
        let source = Subject(value: 1)
        let log = Log<Bool>()
        let upper = await source.combineLatest(await source.map { $0 }).map { $0 + $1 }
        let deep = await upper.combineLatest(await source.map { $0 }, await upper.map { $0 })
        let whole = await source.combineLatest(deep, upper)
        let subscription = await whole.tap { source, deep, upper in
            log.record(deep.0 == 2 * source && deep.1 == source && deep.2 == 2 * source && upper == 2 * source)
        }
        for number in 2...20 { await source.set(number) }
        #expect(log.values == [Bool](repeating: true, count: 20))
        withExtendedLifetime(subscription) {}
    }

    @Test("a diamond below a switchToLatest to a deeper stream never mixes values")
    func switchingDiamond() async {
        let source = Subject(value: 1)
        let deep = await source.combineLatest(await source.map { $0 }).map { $0.0 }.combineLatest(source).map { $0.0 }
        let choice = Subject(value: source.any())
        let log = Log<String>()
        let subscription = await choice.switchToLatest().combineLatest(source).tap { log.record("\($0)\($1)") }
        await source.set(2)
        await choice.set(deep.any())
        await source.set(3)
        #expect(log.values == ["11", "22", "22", "33"])
        withExtendedLifetime(subscription) {}
    }

    @Test("a diamond stays consistent while other tasks set other inputs")
    func diamondsUnderLoad() async {
        let (source, other) = (Subject(value: 0), Subject(value: 0))
        let slow = await source.map { value in
            await Task.yield()
            return value
        }
        let mixed = await source.combineLatest(other)
        let upper = await mixed.combineLatest(slow)
        let torn = Log<String>()
        let seen = Log<Int>()
        let subscription = await upper.combineLatest(source, other).tap { upper, source, other in
            if upper.0.0 != source || upper.1 != source || upper.0.1 != other {
                torn.record("\(upper) \(source) \(other)")
            }
            seen.record(source + other)
        }
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<8 {
                group.addTask {
                    for _ in 0..<500 { await (writer.isMultiple(of: 2) ? source : other).mutate { $0 += 1 } }
                }
            }
        }
        #expect(torn.values.isEmpty, "\(torn.values.prefix(3))")
        #expect(seen.values.last == 4000)
        #expect(seen.values == seen.values.sorted())
        withExtendedLifetime(subscription) {}
    }

    @Test("when set returns, the change has passed every join below")
    func completion() async {
        let (a, b) = (Subject(value: 0), Subject(value: 0))
        let sum = await a.combineLatest(b).combineLatest(a).map { $0.0.0 + $0.0.1 }
        await withTaskGroup(of: Void.self) { group in
            for subject in [a, b] {
                group.addTask {
                    for number in 1...300 {
                        await subject.set(number)
                        // The other may be further, this one cannot be behind.
                        #expect(await sum.currentValue()! >= number)
                    }
                }
            }
        }
        #expect(await sum.currentValue() == 600)
    }

    @Test("several values of one wave produce several combinations")
    func burst() async {
        let relay = Relay<Int>()
        let log = Log<String>()
        let burst = await relay.flatMap { [$0, $0 + 1] }
        let subscription = await burst.combineLatest(relay).tap { log.record("\($0)\($1)") }
        await relay.send(1)
        await relay.send(5)
        #expect(log.values == ["11", "21", "55", "65"])
        withExtendedLifetime(subscription) {}
    }

    @Test("two to seven streams combine, as does a collection")
    func arities() async {
        let (a, b, c) = (Subject(value: 1), Subject(value: "b"), Subject(value: 0.5))
        let (d, e, f, g) = (Subject(value: 4), Subject(value: true), Subject(value: "f"), Subject(value: 7))
        #expect(await a.combineLatest(b).currentValue()! == (1, "b"))
        #expect(await a.combineLatest(b, c).currentValue()! == (1, "b", 0.5))
        #expect(await a.combineLatest(b, c, d).currentValue()! == (1, "b", 0.5, 4))
        #expect(await a.combineLatest(b, c, d, e).currentValue()! == (1, "b", 0.5, 4, true))
        #expect(await a.combineLatest(b, c, d, e, f).currentValue()! == (1, "b", 0.5, 4, true, "f"))
        let seven = await Streams.combineLatest(a, b, c, d, e, f, g).map { "\($0)\($1)\($2)\($3)\($4)\($5)\($6)" }
        #expect(await seven.currentValue() == "1b0.54truef7")
        await g.set(8)
        #expect(await seven.currentValue() == "1b0.54truef8")

        let list = await [a, d, g].combineLatest()
        #expect(await list.currentValue() == [1, 4, 8])
        await d.set(5)
        #expect(await list.currentValue() == [1, 5, 8])
        #expect(await [Subject<Int>]().combineLatest().currentValue() == [])
    }

    @Test("a subscriber of one input may set another input of the same join")
    func sideways() async {
        let (a, b) = (Subject(value: 0), Subject(value: 0))
        let log = Log<String>()
        let joined = await a.combineLatest(b).combineLatest(a).tap { log.record("\($0.0)\($0.1)\($1)") }
        let follow = await a.subscribe { await b.set($0 * 2) }
        await a.set(1)
        await a.set(2)
        #expect(log.values.last == "242")
        withExtendedLifetime((joined, follow)) {}
    }

    @Test("a merge starts with the current value of the last stream that has one")
    func mergeCurrent() async {
        let (a, b, c) = (Subject(value: 1), Subject(value: 2), Relay<Int>())
        #expect(await Streams.Merge(a, b).currentValue() == 2)
        let four = await Streams.Merge(a, b, c, Streams.Constant(9))
        #expect(await four.currentValue() == 9)
        let three = await Streams.Merge(a, b, c)
        #expect(await three.currentValue() == 2)
        await c.send(7)
        #expect(await three.currentValue() == 7)
        #expect(await Streams.Merge([a.any(), b.any()]).currentValue() == 2)
    }

    @Test("the values of a merge keep their order below it, whichever task sends")
    func mergeOrder() async {
        let relays = (0..<4).map { _ in Relay<Int>() }
        let (above, below) = (Log<Int>(), Log<Int>())
        let merged = await relays.merge()
        let first = await merged.subscribe { above.record($0) }
        let second = await merged.map { value in
            await Task.yield()
            return value
        }
        .subscribe { below.record($0) }
        await relays.enumerated().map { $0 }.forEachConcurrent { index, relay in
            for number in 0..<100 { await relay.send(index * 100 + number) }
        }
        #expect(above.values.count == 400)
        #expect(above.values == below.values)
        withExtendedLifetime((first, second)) {}
    }
}
