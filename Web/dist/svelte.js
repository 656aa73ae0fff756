/* svelte.js of Trebuchet, MIT License */
function r(r){return{subscribe(t){let e=()=>t(r.getSnapshot()),s=r.subscribe(e);try{e()}catch(r){throw s(),r}return s}}}export{r as readable};
