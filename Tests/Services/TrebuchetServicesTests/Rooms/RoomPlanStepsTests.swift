import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// Each event of a plan, and the next step.
@Suite("The steps of a client in a room") struct RoomPlanStepsTests {
    private let ticket = RoomTicket(membershipID: "s", token: "t", events: EventPosition(epoch: "e", last: 0))
    private let quiet = JSONValue.object(["typing": .bool(false)])
    private let typing = JSONValue.object(["typing": .bool(true)])
    private let join = RoomPlan.Step.join(presence: .integer(1), token: "t")

    /// A joined plan without a pending step.
    private func joinedPlan(attempt: String? = "a") -> RoomPlan {
        var plan = RoomPlan(attempt: attempt)
        plan.users = 1
        plan.setPresence(quiet)
        plan.connected()
        plan.joined(ticket, showing: quiet)
        return plan
    }

    @Test("a new plan is not connected, not joined and not in use")
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

    @Test("a presence is settled when it is shown over the present connection")
    func settled() {
        var plan = joinedPlan()
        #expect(plan.isJoined && plan.ticket == ticket)
        #expect(plan.isSettled(quiet) && !plan.isSettled(typing) && !plan.isSettled(nil))
        plan.setPresence(typing)
        #expect(!plan.isSettled(typing))
        plan.didSetPresence(typing)
        #expect(plan.isSettled(typing))
        plan.disconnected(nil)
        #expect(!plan.isSettled(typing) && !plan.isJoined && !plan.isConnected)
        plan.left()
        plan.connected()
        #expect(!plan.isSettled(typing))
    }

    @Test(
        "after a join an event has priority; a sent presence or a publish changes the turn",
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

    @Test("after a failure the server's state is unknown: the whole presence is sent")
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
        plan.didSetPresence(typing)
        #expect(plan.error == nil)
        #expect(plan.next(hasEvents: false) == .wait)
    }

    @Test("a failed join is repeated with increasing delays of up to ten seconds")
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
        // After a success the delays start again.
        plan.joined(ticket, showing: quiet)
        #expect(plan.failed(.set(quiet), with: TrebuchetError(.timeout, "late")) == .milliseconds(100))
        plan.didSetPresence(quiet)
        #expect(plan.lost(RoomError.roomClosed) == .milliseconds(100))
        #expect(plan.lost(RoomError.roomClosed) == .milliseconds(200))
        #expect(plan.error as? RoomError == .roomClosed)
        #expect(!plan.isJoined && plan.next(hasEvents: true) == .wait)
        plan.retry()
        #expect(plan.next(hasEvents: true) == .join(presence: quiet, token: "t"))
    }

    @Test(
        "a room that has moved to another node is joined there immediately, without an error; repeated moves are delayed"
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
        "a step that belonged to another connection is repeated immediately the first time",
        arguments: [
            (RoomError.notJoined, "t"), (.roomClosed, nil), (.unknownToken, nil), (.notYours, nil),
        ] as [(RoomError, String?)])
    func anotherConnection(error: RoomError, token: String?) {
        var plan = joinedPlan()
        #expect(plan.failed(.publish, with: error) == nil)
        #expect(!plan.isJoined && plan.error == nil)
        #expect(plan.next(hasEvents: true) == .join(presence: quiet, token: token))
        // Another user joins without the attempt of the previous user.
        #expect(plan.attempt == (error == .notYours ? nil : "a"))
        #expect(plan.failed(join, with: error) == .milliseconds(200))
        #expect(plan.next(hasEvents: true) == .wait)
    }

    @Test("a plan keeps its membership and attempt while a sign-in is in progress")
    func signingIn() {
        var plan = joinedPlan()
        plan.disconnected(nil)
        plan.connected()
        plan.isSigningIn = true
        for _ in 0..<10 {
            #expect(plan.failed(join, with: RoomError.notSignedIn) != nil)
            #expect(plan.ticket == ticket && plan.attempt == "a")
            plan.retry()
        }
    }

    @Test("a plan waits three times for the sign-in; then it joins the room anonymously")
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

    @Test("a refused presence is sent again after another one was accepted")
    func refused() {
        var plan = joinedPlan()
        plan.setPresence(typing)
        let error = RoomError.presenceTooLarge(bytes: 2, limit: 1)
        #expect(plan.failed(.patch(typing), with: error) == nil)
        #expect(plan.error as? RoomError == error)
        #expect(plan.next(hasEvents: false) == .wait)
        // Removing the presence is not refused.
        plan.setPresence(nil)
        #expect(plan.next(hasEvents: false) == .set(nil))
        plan.didSetPresence(nil)
        plan.setPresence(typing)
        #expect(plan.next(hasEvents: false) == .set(typing))
    }

    @Test("a plan without a membership needs no leave; without a connection, or during a delay, the leave waits")
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

    @Test("an error of the connection stays until a success; an end without an error changes nothing")
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
