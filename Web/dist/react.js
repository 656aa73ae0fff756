/* react.js of Trebuchet, MIT License */
import{useMemo as t,useSyncExternalStore as e}from"react";var r=()=>{};function a(e,r,a){return t(()=>e.actor(r,a),[e,r,a])}function o(a,o){let s=t(()=>o?a.at(o):a,[a,o]);return e(s.subscribe,s.getSnapshot,s.getServerSnapshot??r)}export{a as useActor,o as useActorState};
