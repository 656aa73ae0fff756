import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite struct DrainPlanTests {
    @Test(
        "clients are notified in batches within the drain time, and reconnect with spread delays",
        arguments: [
            (0, Duration.seconds(5), 100, 2_000), (99, .seconds(5), 100, 2_000), (10_000, .seconds(5), 100, 10_000),
            (100_000, .seconds(5), 200, 30_000), (1_000_001, .seconds(1), 10_001, 30_000),
            (5_000, .zero, 5_000, 5_000), (5_000, .milliseconds(9), 5_000, 5_000),
        ])
    func plan(_ clients: Int, _ time: Duration, _ batch: Int, _ spread: Int) {
        let plan = DrainPlan(clients: clients, within: time)
        #expect(plan.batch == batch)
        #expect(plan.spreadMilliseconds == spread)
    }
}
