import QStream
import Testing

/// Plain operators, tick by tick.
@Suite(.timeLimit(.minutes(5))) struct OperatorMarbleTests {
    @Test("the diagram of an unmodified stream is its input")
    func identity() {
        #expect(Stage().play("a--(bc)-d") { relays, _ in relays[0] } == "a--(bc)-d")
    }

    @Test("map transforms each value")
    func map() {
        #expect(Stage().play("a-b-c") { r, _ in await r[0].map { $0.uppercased() } } == "A-B-C")
    }

    @Test("compactMap drops values that become nil")
    func compactMap() {
        #expect(Stage().play("1-x-3") { r, _ in await r[0].compactMap { Int($0) }.map { "\($0 + 1)" } } == "2---4")
        let output = Stage().play("1-x-3") { r, _ in
            await r[0].map { Int($0) }.compactMap().map { "\($0 + 1)" }
        }
        #expect(output == "2---4")
    }

    @Test("flatMap sends each element separately and has no current value")
    func flatMap() async {
        #expect(Stage().play("a-b") { r, _ in await r[0].flatMap { [$0, $0] } } == "(aa)-(bb)")
        #expect(Stage().play("a-b") { r, _ in await r[0].map { [$0, "x"] }.flatMap() } == "(ax)-(bx)")
        #expect(await Subject(value: 1).flatMap { [$0] }.currentValue() == nil)
    }

    @Test("scan accumulates, with either label")
    func scan() {
        #expect(Stage().play("a-b-c") { r, _ in await r[0].scan("") { $0 + $1 } } == "a-(ab)-(abc)")
        #expect(
            Stage().play("a-b-c") { r, _ in await r[0].scan(initialResult: "x") { $0 + $1 } } == "(xa)-(xab)-(xabc)")
    }

    @Test("selfScan receives the previous value")
    func selfScan() {
        #expect(Stage().play("a-b-c") { r, _ in await r[0].selfScan { ($0 ?? "") + $1 } } == "a-(ab)-(bc)")
    }

    @Test("filter, first and drop(while:) pass the matching values")
    func filters() {
        #expect(Stage().play("1-5-2-7") { r, _ in await r[0].filter { $0 > "3" } } == "--5---7")
        #expect(Stage().play("--a-b-c") { r, _ in await r[0].first() } == "--a----")
        #expect(Stage().play("1-2-5-1") { r, _ in await r[0].drop { $0 < "3" } } == "----5-1")
    }

    @Test("removeDuplicates compares with the last value that passed")
    func removeDuplicates() {
        #expect(Stage().play("aab-ba") { r, _ in await r[0].removeDuplicates() } == "a-b--a")
        let output = Stage().play("1234567") { r, _ in await r[0].removeDuplicates { Int($1)! - Int($0)! < 3 } }
        #expect(output == "1--4--7")
    }

    @Test("merge sends the values of all streams in the order of their arrival")
    func merge() {
        #expect(Stage().play("a--b", "-c-d") { r, _ in await r[0].merge(r[1]) } == "ac-(bd)")
        #expect(Stage().play("a--b", "-c-d") { r, _ in await r.merge() } == "ac-(bd)")
    }

    @Test("combineLatest starts when all streams have a value")
    func combineLatest() {
        let output = Stage().play("a---b-", "--1--2") { r, _ in await r[0].combineLatest(r[1]).map { $0 + $1 } }
        #expect(output == "--(a1)-(b1)(b2)")
    }

    @Test("with(initialValue:) gives a stream without a value one")
    func with() {
        #expect(Stage().play("--a") { r, _ in await r[0].with(initialValue: "0") } == "0-a")
    }

    @Test("switchToLatest follows only the newest stream")
    func switchToLatest() {
        let output = Stage().play("-a----b-----", "-1-2---3--4-", "7--8----9---") { r, _ in
            await r[0].map { name in name == "a" ? r[1] : r[2] }.switchToLatest()
        }
        #expect(output == "-1-2----9---")
    }

    @Test("mapOptionalToLatest falls back to the default")
    func mapOptionalToLatest() {
        let output = Stage().play("n-a--n-", "--12--3") { r, _ in
            await r[0].map { $0 == "n" ? nil : $0 }
                .mapOptionalToLatest(default: "0") { (_: String) in r[1] }
                .map { $0 }
        }
        #expect(output == "0-12-0-")
    }

    @Test("print writes each value and passes it on")
    func print() {
        let log = Log<String>()
        #expect(Stage().play("a-b") { r, _ in await r[0].print("it", to: { log.record($0) }) } == "a-b")
        #expect(log.values == ["it: a", "it: b"])
    }

    @Test("keyDiffStream reports removed and added keys, not changed values")
    func keyDiff() async {
        let subject = Subject(value: ["a": 1])
        let log = Log<String>()
        let subscription = await subject.keyDiffStream().tap { diff in
            log.record("-\(diff.removals.keys.sorted()) +\(diff.insertions.keys.sorted())")
        }
        await subject.set(["a": 2])
        await subject.set(["a": 2, "b": 3])
        await subject.set(["b": 3])
        #expect(log.values == [#"-[] +["a"]"#, #"-[] +["b"]"#, #"-["a"] +[]"#])
        withExtendedLifetime(subscription) {}
    }
}
