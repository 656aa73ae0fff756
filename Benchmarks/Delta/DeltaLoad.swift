import Trebuchet

/// Measures the cost of one changed element by the size of the collection. It measures the steps alone, and the path from a
/// call to a reader's new value over a WebSocket. The baseline is a state that is encoded and compared.
///
/// The collections alternate, so that other load affects all of them.
struct DeltaLoad {
    let counts: [Int]
    let rounds: Int

    private static let series = 20

    func run() async throws -> BenchReport {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 1)
        for count in counts {
            await server.expose(KeyedBoard(count: count, actorSystem: server.actorSystem), as: "keyed\(count)")
            await server.expose(ComparedBoard(count: count, actorSystem: server.actorSystem), as: "compared\(count)")
        }
        let address = try await server.start()
        let url = "ws://\(address.host):\(address.port)"
        let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
        try await client.connect()

        var steps = counts.map { DeltaSteps(count: $0) }
        var keyed: [DeltaRoundTrips<KeyedBoard>] = []
        for count in counts {
            let name = "keyed\(count)"
            keyed.append(
                try await DeltaRoundTrips(client.resolve(KeyedBoard.self, id: name), named: name, count: count))
        }
        let echo = try LoopbackEcho(size: 256)
        var raw: [Int] = []
        for number in 0...Self.series {
            raw += echo.run(max(1, rounds / Self.series))
            for index in counts.indices {
                try steps[index].run(max(1, rounds / Self.series))
                try await keyed[index].run(max(1, rounds / Self.series))
            }
            if number == 0 { raw = [] }
        }

        var report = BenchReport()
        report.add("raw_echo_ns", raw.median)
        var first: [String: Int] = [:]
        for (index, count) in counts.enumerated() {
            let bytes = try await keyed[index].wireBytes(url)
            let measurements = [
                ("change_ns", steps[index].updates.median), ("encode_ns", steps[index].encodes.median),
                ("apply_ns", steps[index].applies.median), ("wire_bytes", bytes),
                ("server_cpu_ns", keyed[index].serverTimes.median),
                ("client_cpu_ns", keyed[index].clientTimes.median),
                ("round_trip_ns", keyed[index].times.median),
            ]
            for (name, value) in measurements {
                report.add("\(name)_\(count)", value)
                let least = first[name] ?? value
                first[name] = least
                if index > 0 { report.add("\(name)_\(count)_percent_of_\(counts[0])", value * 100 / max(1, least)) }
            }
            let whole = try steps[index].whole()
            report.add("whole_encode_ns_\(count)", whole.time)
            report.add("whole_bytes_\(count)", whole.bytes)
        }
        for count in counts {
            let name = "compared\(count)"
            var compared = try await DeltaRoundTrips(
                client.resolve(ComparedBoard.self, id: name), named: name, count: count)
            try await compared.run(max(3, min(rounds, 200_000 / count)))
            report.add("compared_server_cpu_ns_\(count)", compared.serverTimes.median)
            report.add("compared_client_cpu_ns_\(count)", compared.clientTimes.median)
            report.add("compared_round_trip_ns_\(count)", compared.times.median)
        }
        await client.close()
        await server.shutdown(drain: .zero)
        return report
    }
}
