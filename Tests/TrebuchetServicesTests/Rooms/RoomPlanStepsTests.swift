import Testing
import Trebuchet

@testable import TrebuchetServices

/// Each thing that may happen to a plan, and what it does next.
@Suite("What a client does next about a room") struct RoomPlanStepsTests {
    private let ticket = RoomTicket(membershipID: "s", token: "t", events: EventPosition(epoch: "e", last: 0))
    private let quiet = JSONValue.object(["typing": .bool(false)])
    private let typing = JSONValue.object(["typing": .bool(true)])
    private let join = RoomPlan.Step.join(presence: .integer(1), token: "t")

    /// Joined, with nothing to do.
    private func joinedPlan(attempt: String? = "a") -> RoomPlan {
        var plan = RoomPlan(attempt: attempt)
        plan.users = 1
        plan.setPresence(quiet)
        plan.connected()
        plan.joined(ticket, showing: quiet)
        return plan
    }

    @Test("a plan begins with nothing: not connected, not joined, of no interest")
    func beginning() {
        var plan = RoomPlan()
        #expect(!plan.isConnected && !plan.isJoined && !plan.isClosed)
        #expect(plan.ticket == nil && plan.presence == nil && plan.error == nil && plan.attempt == nil)
        #expect(plan.next(hasEvents: true) == .end)
        plan.users = 1
        #expect(plan.next(hasEvents: true) == .wait)
        plan.connected()
        #expect(plan.isConnected && !plan.isJoined)
        #expect(plan.next(hasEvents: true) == .join(presence: nil, token: nil))
    }

    @Test("a presence has come to its end when it is shown over the present connection")
    func settled() {
        var plan = joinedPlan()
        #expect(plan.isJoined && plan.ticket == ticket)
        #expect(plan.isSettled(quiet) && !plan.isSettled(typing) && !plan.isSettled(nil))
        plan.setPresence(typing)
        #expect(!plan.isSettled(typing))
        plan.showed(typing)
        #expect(plan.isSettled(typing))
        plan.disconnected(nil)
        #expect(!plan.isSettled(typing) && !plan.isJoined && !plan.isConnected)
        plan.left()
        plan.connected()
        #expect(!plan.isSettled(typing))
    }

    @Test(
        "after the join it is the turn of an event; what was just shown, and a publish, end it",
        arguments: [true, false])
    func turns(wasPublished: Bool) {
        var plan = joinedPlan()
        if wasPublished { plan.published() }
        plan.setPresence(typing)
        let patch = RoomPlan.Step.patch(.object(["typing": .bool(true)]))
        #expect(plan.next(hasEvents: true) == (wasPublished ? patch : .publish))
        #expect(plan.next(hasEvents: false) == patch)
        plan.published()
        plan.setPresence(quiet)
        #expect(plan.next(hasEvents: true) == .publish)
        #expect(plan.next(hasEvents: false) == .wait)
    }

    @Test("what the server was shown is not known after a failure: then the whole is sent")
    func unknown() {
        var plan = joinedPlan()
        plan.setPresence(typing)
        let failure = TrebuchetError(.unknownOutcome, "cut")
        #expect(plan.failed(.patch(typing), with: failure) == .milliseconds(100))
        #expect(plan.next(hasEvents: false) == .wait)
        plan.retry()
        #expect(plan.isJoined)
        #expect(plan.next(hasEvents: false) == .set(typing))
        #expect(plan.error as? TrebuchetError == failure)
        plan.showed(typing)
        #expect(plan.error == nil)
        #expect(plan.next(hasEvents: false) == .wait)
    }

    @Test("a join that fails is made again, later each time up to ten seconds")
    func delays() {
        var plan = joinedPlan()
        plan.disconnected(nil)
        plan.connected()
        var delays: [Duration?] = []
        for _ in 0..<10 { delays.append(plan.failed(join, with: TrebuchetError(.timeout, "late"))) }
        let expected: [Duration?] = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000].map {
            .milliseconds($0)
        }
        #expect(delays == expected)
        // It works, and the next failure is the first.
        plan.joined(ticket, showing: quiet)
        #expect(plan.failed(.set(quiet), with: TrebuchetError(.timeout, "late")) == .milliseconds(100))
        plan.showed(quiet)
        #expect(plan.lost(RoomError.roomClosed) == .milliseconds(100))
        #expect(plan.lost(RoomError.roomClosed) == .milliseconds(200))
        #expect(plan.error as? RoomError == .roomClosed)
        #expect(!plan.isJoined && plan.next(hasEvents: true) == .wait)
        plan.retry()
        #expect(plan.next(hasEvents: true) == .join(presence: quiet, token: "t"))
    }

    @Test(
        "a room that has moved to another node is joined there at once, and is no error; when it goes on so, later each time"
    )
    func moved() {
        var plan = joinedPlan()
        #expect(plan.moved(RoomError.notJoined) == nil)
        #expect(plan.error == nil && plan.next(hasEvents: true) == .join(presence: quiet, token: "t"))
        plan.joined(ticket, showing: quiet)
        #expect(plan.moved(RoomError.notJoined) == .milliseconds(100))
        #expect(plan.error as? RoomError == .notJoined && plan.next(hasEvents: true) == .wait)
        plan.retry()
        plan.joined(ticket, showing: quiet)
        plan.recordActivity()
        #expect(plan.moved(RoomError.notJoined) == nil && plan.error == nil)
    }

    @Test(
        "what belongs to another connection is done again at once, the first time",
        arguments: [
            (RoomError.notJoined, "t"), (.roomClosed, nil), (.unknownToken, nil), (.notYours, nil),
        ] as [(RoomError, String?)])
    func anotherConnection(error: RoomError, token: String?) {
        var plan = joinedPlan()
        #expect(plan.failed(.publish, with: error) == nil)
        #expect(!plan.isJoined && plan.error == nil)
        #expect(plan.next(hasEvents: true) == .join(presence: quiet, token: token))
        // Somebody else joins as such, not with the attempt of the one before.
        #expect(plan.attempt == (error == .notYours ? nil : "a"))
        #expect(plan.failed(join, with: error) == .milliseconds(200))
        #expect(plan.next(hasEvents: true) == .wait)
    }

    @Test("signing in is waited for three times; then the room is joined as nobody")
    func notSignedIn() {
        var plan = joinedPlan()
        plan.disconnected(nil)
        plan.connected()
        for delay in [100, 200, 400] {
            #expect(plan.failed(join, with: RoomError.notSignedIn) == .milliseconds(delay))
            #expect(plan.ticket == ticket && plan.attempt == "a")
            plan.retry()
        }
        #expect(plan.failed(join, with: RoomError.notSignedIn) == .milliseconds(800))
        #expect(plan.ticket == nil && plan.attempt == nil)
        plan.retry()
        #expect(plan.next(hasEvents: false) == .join(presence: quiet, token: nil))
    }

    @Test("a presence that was refused is sent again when another one was taken between")
    func refused() {
        var plan = joinedPlan()
        plan.setPresence(typing)
        let error = RoomError.presenceTooLarge(bytes: 2, limit: 1)
        #expect(plan.failed(.patch(typing), with: error) == nil)
        #expect(plan.error as? RoomError == error)
        #expect(plan.next(hasEvents: false) == .wait)
        // Taking it away is not refused.
        plan.setPresence(nil)
        #expect(plan.next(hasEvents: false) == .set(nil))
        plan.showed(nil)
        plan.setPresence(typing)
        #expect(plan.next(hasEvents: false) == .set(typing))
    }

    @Test("who has nothing to leave is done; without a connection, or held back, the leave waits")
    func leaving() {
        var plan = joinedPlan()
        plan.users = 0
        #expect(plan.next(hasEvents: true) == .leave(token: "t"))
        #expect(plan.failed(.leave(token: "t"), with: TrebuchetError(.timeout, "late")) == .milliseconds(100))
        #expect(plan.next(hasEvents: true) == .wait)
        plan.retry()
        plan.disconnected(nil)
        #expect(plan.next(hasEvents: true) == .wait)
        plan.closed(RoomError.noBackend)
        #expect(plan.isClosed && plan.error as? RoomError == .noBackend)
        #expect(plan.next(hasEvents: true) == .end)
        var left = joinedPlan()
        left.users = 0
        left.left()
        #expect(!left.isJoined && left.ticket == nil)
        #expect(left.next(hasEvents: true) == .end)
    }

    @Test("an error of the connection stays until it works; an end without one leaves what there was")
    func connectionErrors() {
        var plan = joinedPlan()
        plan.disconnected(RoomError.roomFull(limit: 1))
        plan.disconnected(nil)
        #expect(plan.error as? RoomError == .roomFull(limit: 1))
        plan.connected()
        #expect(plan.error as? RoomError == .roomFull(limit: 1))
        plan.joined(ticket, showing: quiet)
        #expect(plan.error == nil)
    }
}
